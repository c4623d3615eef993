"""TopicsDeleted: a group forgets the offsets of topics that are gone from the cluster."""

import pytest

from coordinator_logic.errors import Error
from coordinator_logic.messages import TopicsDeletedResponse
from coordinator_logic.records import OffsetsDeleted, TopicPartitions
from tests.logic.driver import DELAY_MS, Driven, joined, reading

OFFSETS = {("gone", 1): 1, ("gone", 0): 2, ("gone too", 5): 3, ("stays", 0): 4}


def topics_of(driven: Driven) -> set[str]:
    """The topics with a committed offset."""
    return {topic for topic, _, _ in driven.group.committed_offsets()}


@pytest.mark.parametrize("state", ["Empty", "PreparingRebalance", "CompletingRebalance", "Stable"])
@pytest.mark.parametrize("protocol_type", ["consumer", "connect"])
def test_the_offsets_go_in_every_state_also_while_members_read_the_topic(
    driven: Driven, state: str, protocol_type: str
) -> None:
    driven.commit(offsets=OFFSETS)
    if state != "Empty":
        answer = driven.join(version=3, protocol_type=protocol_type, protocols=reading("gone"))
        if state != "PreparingRebalance":
            driven.sleep(DELAY_MS)
        if state == "Stable":
            driven.sync_all([joined(answer)])
    assert driven.state().value == state
    assert driven.topics_deleted("gone", "gone too", "unknown").body == TopicsDeletedResponse()
    assert topics_of(driven) == {"stays"}
    assert driven.state().value == state


def test_the_journal_names_every_partition_once(driven: Driven) -> None:
    driven.commit(offsets=OFFSETS)
    driven.commit_in_transaction({("gone", 1): 7, ("gone", 2): 8})
    driven.topics_deleted("gone too", "gone", "gone")
    topics = [TopicPartitions("gone too", [5]), TopicPartitions("gone", [0, 1, 2])]
    assert driven.records[-1] == OffsetsDeleted(topics, "the topic was deleted")


def test_what_a_transaction_has_pending_does_not_come_back(driven: Driven) -> None:
    driven.commit_in_transaction({("gone", 0): 1, ("stays", 0): 2})
    driven.topics_deleted("gone")
    driven.end_transaction(commit=True)
    assert topics_of(driven) == {"stays"}


def test_an_absent_group_has_nothing_to_forget_and_is_not_created(driven: Driven) -> None:
    assert driven.topics_deleted("gone").error is Error.NONE
    assert not driven.exists


@pytest.mark.parametrize("topics", [(), ("unknown",)])
def test_where_there_is_nothing_to_forget_nothing_is_recorded(driven: Driven, topics: tuple[str, ...]) -> None:
    driven.commit(offsets=OFFSETS)
    before = len(driven.journal)
    driven.topics_deleted(*topics)
    assert len(driven.journal) == before
