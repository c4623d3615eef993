import pytest

from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    FetchedGroup,
    FetchedPartition,
    FetchedTopic,
    GroupToFetch,
    OffsetFetchRequest,
    OffsetFetchResponse,
    TopicToFetch,
)
from tests.logic.driver import GROUP_ID, Answer, Driven

NOTHING = FetchedPartition(0, -1, -1, "", 0)


def test_an_absent_group_has_no_offsets_and_no_error(driven: Driven) -> None:
    assert driven.fetch({"topic": [0]}) == [FetchedTopic("topic", [NOTHING])]
    assert driven.fetch() == []
    assert not driven.exists


@pytest.mark.parametrize("require_stable", [False, True])
def test_a_group_answers_with_what_is_stored_in_the_order_of_the_request(driven: Driven, require_stable: bool) -> None:
    driven.commit(offsets={("a", 0): 1, ("a", 1): 2, ("b", 0): 3}, metadata="m", leader_epoch=7)
    wanted = {"b": [1, 0], "unknown": [0], "a": [1]}
    assert driven.fetch(wanted, require_stable=require_stable) == [
        FetchedTopic("b", [FetchedPartition(1), FetchedPartition(0, 3, 7, "m")]),
        FetchedTopic("unknown", [NOTHING]),
        FetchedTopic("a", [FetchedPartition(1, 2, 7, "m")]),
    ]


def test_without_topics_all_that_is_committed_is_answered(driven: Driven) -> None:
    driven.commit(offsets={("a", 0): 1, ("b", 2): 3})
    assert driven.fetch() == [
        FetchedTopic("a", [FetchedPartition(0, 1)]),
        FetchedTopic("b", [FetchedPartition(2, 3)]),
    ]
    assert driven.fetch({}) == [], "no topics is not all topics"


def test_each_fetch_sees_the_commits_before_it(driven: Driven) -> None:
    for offset in (10, 20, 5):
        driven.commit(offsets={("topic", 0): offset})
        assert driven.fetch_one().committed_offset == offset
    driven.commit(offsets={("topic", 1): 1})
    assert [p.partition_index for p in driven.fetch()[0].partitions] == [0, 1]


@pytest.mark.parametrize("state", ["empty", "preparing", "completing", "stable"])
def test_every_state_answers_every_sender(driven: Driven, state: str) -> None:
    driven.commit()
    if state == "preparing":
        driven.join(version=3)
    elif state == "completing":
        driven.join_with_members(1)
    elif state == "stable":
        driven.stable_group(1)
    assert driven.fetch_one().committed_offset == 100


@pytest.mark.parametrize("version", range(8))
def test_before_version_8_the_one_group_is_at_the_top_level(driven: Driven, version: int) -> None:
    driven.commit()
    body = OffsetFetchRequest(GROUP_ID, [TopicToFetch("topic", [0, 1])])
    answer: Answer[OffsetFetchResponse] = driven.send("OffsetFetch", body, version=version)
    topics = [FetchedTopic("topic", [FetchedPartition(0, 100), FetchedPartition(1)])]
    assert answer.body == OffsetFetchResponse(0, topics, [])


@pytest.mark.parametrize("version", range(2, 8))
def test_from_version_2_on_all_offsets_of_the_group_can_be_fetched(driven: Driven, version: int) -> None:
    driven.commit()
    answer: Answer[OffsetFetchResponse] = driven.send("OffsetFetch", OffsetFetchRequest(GROUP_ID), version=version)
    assert answer.body == OffsetFetchResponse(0, [FetchedTopic("topic", [FetchedPartition(0, 100)])], [])


def test_the_sender_does_not_matter(driven: Driven) -> None:
    driven.stable_group(1)
    body = OffsetFetchRequest(groups=[GroupToFetch(GROUP_ID, None, "unknown-id", 17)])
    answer: Answer[OffsetFetchResponse] = driven.send("OffsetFetch", body)
    assert answer.body.groups == [FetchedGroup(GROUP_ID, [], Error.NONE)]


def test_an_entry_for_another_group_is_answered_not_coordinator(driven: Driven) -> None:
    driven.commit()
    body = OffsetFetchRequest(groups=[GroupToFetch("other"), GroupToFetch(GROUP_ID), GroupToFetch("third", [])])
    answer: Answer[OffsetFetchResponse] = driven.send("OffsetFetch", body)
    assert answer.body.groups == [
        FetchedGroup("other", [], Error.NOT_COORDINATOR),
        FetchedGroup(GROUP_ID, [FetchedTopic("topic", [FetchedPartition(0, 100)])], Error.NONE),
        FetchedGroup("third", [], Error.NOT_COORDINATOR),
    ]


def test_a_deleted_group_has_no_offsets(driven: Driven) -> None:
    driven.commit()
    driven.delete()
    assert driven.fetch() == []
