"""TopicsDeleted: a group deletes the offsets of topics that were deleted from the cluster."""

import pytest

from coordinator_logic.errors import Error
from coordinator_logic.messages import TopicsDeletedResponse
from coordinator_logic.records import OffsetsDeleted, TopicPartitions
from tests.logic.driver import DELAY_MS, Driven, joined, reading

OFFSETS = {("deleted", 1): 1, ("deleted", 0): 2, ("deleted too", 5): 3, ("stays", 0): 4}


def topics_of(driven: Driven) -> set[str]:
    """The topics with a committed offset."""
    return {topic for topic, _, _ in driven.group.committed_offsets()}


@pytest.mark.parametrize("state", ["Empty", "PreparingRebalance", "CompletingRebalance", "Stable"])
@pytest.mark.parametrize("protocol_type", ["consumer", "connect"])
def test_the_offsets_are_deleted_in_every_state_even_of_a_subscribed_topic(
    driven: Driven, state: str, protocol_type: str
) -> None:
    driven.commit(offsets=OFFSETS)
    if state != "Empty":
        answer = driven.join(version=3, protocol_type=protocol_type, protocols=reading("deleted"))
        if state != "PreparingRebalance":
            driven.sleep(DELAY_MS)
        if state == "Stable":
            driven.sync_all([joined(answer)])
    assert driven.state().value == state
    assert driven.topics_deleted("deleted", "deleted too", "unknown").body == TopicsDeletedResponse()
    assert topics_of(driven) == {"stays"}
    assert driven.state().value == state


def test_the_journal_names_every_partition_once(driven: Driven) -> None:
    driven.commit(offsets=OFFSETS)
    driven.commit_in_transaction({("deleted", 1): 7, ("deleted", 2): 8})
    driven.topics_deleted("deleted too", "deleted", "deleted")
    topics = [TopicPartitions("deleted too", [5]), TopicPartitions("deleted", [0, 1, 2])]
    assert driven.records[-1] == OffsetsDeleted(topics, "the topic was deleted")


def test_the_pending_offsets_of_a_deleted_topic_are_not_committed_later(driven: Driven) -> None:
    driven.commit_in_transaction({("deleted", 0): 1, ("stays", 0): 2})
    driven.topics_deleted("deleted")
    driven.end_transaction(commit=True)
    assert topics_of(driven) == {"stays"}


def test_an_absent_group_is_not_created(driven: Driven) -> None:
    assert driven.topics_deleted("deleted").error is Error.NONE
    assert not driven.exists


@pytest.mark.parametrize("topics", [(), ("unknown",)])
def test_a_topic_without_offsets_records_nothing(driven: Driven, topics: tuple[str, ...]) -> None:
    driven.commit(offsets=OFFSETS)
    before = len(driven.journal)
    driven.topics_deleted(*topics)
    assert len(driven.journal) == before
