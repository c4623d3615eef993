"""Invariants of a group's journal."""

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from coordinator_logic.group import Group
from coordinator_logic.groups.classic.records import StateChanged
from coordinator_logic.groups.classic.transitions import TRANSITIONS
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.records import GroupCreated, JournalEntry, fold
from coordinator_logic.states import State
from tests.support.parts import classic_or_empty, consumer_part


def check_journal(journal: Sequence[JournalEntry], group: Group | None) -> None:
    """Check that the journal counts without gaps, has legal transitions only, and folds to the group."""
    for earlier, later in pairwise(journal):
        if later.incarnation == earlier.incarnation:
            assert later.sequence == earlier.sequence + 1
        else:
            assert later.sequence == 1
            assert isinstance(later.record, GroupCreated)
    for entry in journal:
        if isinstance(entry.record, StateChanged):
            assert State(entry.record.to_state) in TRANSITIONS[State(entry.record.from_state)]
    folded = fold(list(journal))
    if group is None or (group.state is State.DEAD and not journal):
        assert folded is None
        return
    assert folded is not None
    assert recorded(folded) == recorded(group)
    assert folded.sequence == group.sequence


def recorded(group: Group) -> tuple[object, ...]:
    """Every field of a group that only records may change."""
    members = [
        (
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            member.rebalance_timeout_ms,
            member.session_timeout_ms,
            member.protocols,
            member.assignment,
        )
        for member in classic_or_empty(group).members.values()
    ]
    return (
        group.group_id,
        group.incarnation,
        group.state,
        group.part.previous_state,
        group.part.state_timestamp,
        group.generation,
        group.part.protocol_type,
        classic_or_empty(group).protocol_name,
        classic_or_empty(group).leader,
        members,
        group.offsets,
        classic_or_empty(group).subscribed_topics,
        group.open_transactions,
        group.configs,
        _recorded_of_consumers(group),
    )


def _recorded_of_consumers(group: Group) -> ConsumerGroup | None:
    """What records have made of a consumer group: without its working memory."""
    consumer = consumer_part(group)
    if consumer is None:
        return None
    return msgspec.structs.replace(
        consumer,
        refresh_requested=False,
        has_new_topics=False,
        has_unresolved_patterns=False,
        matched={},
        matching_until=0,
    )
