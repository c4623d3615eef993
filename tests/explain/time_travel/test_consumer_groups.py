"""Consumer groups (KIP-848) as of a time: the same rows from the journal and from the state, and what they say."""

from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from coordinator_logic.embedded_protocols import Subscription, encode_subscription
from coordinator_logic.events import Request
from coordinator_logic.messages import DescribedConsumerGroup
from coordinator_logic.snapshot import decode
from streaming.explain.tables.group_states import GroupsFold
from streaming.explain.time_travel.group_history import GroupAt, group_at
from streaming.explain.time_travel.group_types import rows_of_type
from streaming.explain.time_travel.journal_groups import described_at, directory_entry_at, groups_at
from streaming.explain.time_travel.row_types import AssignmentRow, TargetRow
from streaming.explain.time_travel.rows import group_row
from streaming.job.group_batch.state_row import StateRow
from streaming.journal.folded_group import UNKNOWN, Known
from tests.explain.tables.test_group_states import rows, values
from tests.explain.time_travel.test_group_history import Moment, last_moments, rows_in, rows_of
from tests.logic.driver import Answer, listing
from tests.logic.groups.consumer.driver import Consumer, DrivenConsumers, topic_id
from tests.logic.groups.consumer.stories import STORIES, Action, play
from tests.support.properties import examples

T = topic_id("t")


class ObservedConsumers(DrivenConsumers):
    """A consumer group that notes how it is after each step."""

    def __init__(self) -> None:
        super().__init__(group_consumer_regex_refresh_interval_ms=20_000)
        self.moments: list[Moment] = []

    def step(
        self, requests: Sequence[Request], batch_time: int | None = None, read_until: int | None = None
    ) -> list[Answer[Any]]:
        answered = super().step(requests, batch_time, read_until)
        self.moments.append(Moment(self.snapshot, len(self.journal), self.log[-1].place.offset + 1))
        return answered


def played(story: list[Action]) -> ObservedConsumers:
    group = ObservedConsumers()
    play(group, story)
    return group


def revoking_group() -> DrivenConsumers:
    """The member ``a`` has yet to revoke a partition, for which ``b`` waits."""
    group = DrivenConsumers()
    a = Consumer(group, "a").join("t", topics={"t": 2})
    Consumer(group, "b", instance="i").join("t", rack_id="r", server_assignor="uniform")
    group.beat("a", a.epoch)
    return group


@given(story=STORIES)
@examples(30)
def test_the_journal_up_to_a_time_has_the_rows_of_the_state_at_that_time(story: list[Action]) -> None:
    group = played(story)
    for time, moment in last_moments(group.journal, group.moments).items():
        found = group_at(group.journal, time)
        assert found.known is Known.ALL
        assert rows_of(found) == rows_in(moment.stored)


@given(story=STORIES, stop=st.integers(0, 1_000))
@examples(20)
def test_a_stored_state_and_the_journal_after_it_have_the_rows_of_the_journal_alone(
    story: list[Action], stop: int
) -> None:
    group = played(story)
    stored, entries, read = group.moments[stop % len(group.moments)]
    packed = None if stored is None else StateRow(stored).packed()
    whole = rows(GroupsFold().state_of(group.group_id, None, values(group.journal)))
    after = GroupsFold(None, {0: read}).state_of(group.group_id, packed, values(group.journal[entries:]))
    assert rows(after) == whole


def test_a_group_has_its_type_its_epochs_and_its_members() -> None:
    row = group_row(revoking_group().group)
    assert (row.state, row.group_type, row.protocol_type) == ("Reconciling", "consumer", "consumer")
    assert (row.generation, row.target_epoch, row.members, row.leader) == (3, 3, 2, None)


def test_a_member_has_its_epoch_and_names_those_for_whom_it_waits() -> None:
    group = revoking_group().group
    a, b = rows_of_type(group).members(group)
    assert (a.member_epoch, a.member_state, b.member_epoch, b.member_state) == (
        2,
        "unrevoked-partitions",
        3,
        "unreleased-partitions",
    )
    assert (a.assigned_partitions, a.revoking_partitions, a.target_partitions, a.waits_for) == (1, 1, 1, [])
    assert (b.assigned_partitions, b.revoking_partitions, b.target_partitions, b.waits_for) == (0, 0, 1, ["a"])
    assert (b.group_instance_id, b.rack_id, b.server_assignor, b.member_type) == ("i", "r", "uniform", "consumer")
    assert (b.session_timeout_ms, b.protocols, b.subscribed_topics, b.subscribed_pattern) == (None, [], ["t"], None)


def test_assignments_and_targets_are_rows_of_partitions() -> None:
    group = revoking_group().group
    kept, moving = AssignmentRow("the-group", "a", "t", 0, T, 2), AssignmentRow("the-group", "a", "t", 1, T, 2, True)
    assert list(rows_of_type(group).assignments(group)) == [kept, moving]
    assert list(rows_of_type(group).targets(group)) == [
        TargetRow("the-group", "a", "t", 0, T, True, None),
        TargetRow("the-group", "b", "t", 1, T, False, "a"),
    ]


def test_a_topic_that_was_deleted_has_its_id_for_a_name() -> None:
    group = revoking_group()
    group.topics_deleted("t")
    assert {row.topic for row in rows_of_type(group.group).assignments(group.group)} == {T}


def test_a_pattern_and_a_member_of_the_classic_protocol_are_shown_as_such() -> None:
    group = DrivenConsumers()
    group.enter("a", subscribed_topic_regex="t.*", topics={"t": 2})
    metadata = encode_subscription(Subscription(["t"]))
    group.join("classic", protocols=listing("range", metadata=metadata), session_ms=5_000)
    newer, classic = rows_of_type(group.group).members(group.group)
    assert (newer.subscribed_topics, newer.subscribed_pattern) == ([], "t.*")
    assert (classic.member_type, classic.protocols, classic.session_timeout_ms) == ("classic", ["range"], 5_000)


def test_a_group_at_a_time_is_described_as_a_consumer_group() -> None:
    group = revoking_group()
    (found,) = groups_at(lambda: group.journal, None).values()
    described = described_at(found)
    assert isinstance(described, DescribedConsumerGroup)
    assert msgspec.structs.replace(described, assignor_name="uniform") == group.describe_consumers()
    entry = directory_entry_at(found)
    assert (entry.group_state, entry.group_type, entry.members) == ("Reconciling", "consumer", 2)
    unknown = described_at(GroupAt(decode(group.snapshot or b""), Known.OFFSETS))
    assert unknown.group_state == UNKNOWN
