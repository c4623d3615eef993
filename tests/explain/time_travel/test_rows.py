"""The rows of a group: what clients choose, other protocol types, and what is pending or unreadable."""

from datetime import UTC, datetime

from coordinator_logic.committed_offsets import CommittedOffset
from coordinator_logic.embedded_protocols import Assignment, TopicPartition, encode_assignment
from coordinator_logic.group import Group
from coordinator_logic.groups.classic.data import ClassicGroup
from coordinator_logic.groups.classic.member import Member
from coordinator_logic.messages import Protocol
from coordinator_logic.states import State
from streaming.explain.time_travel.group_types import rows_of_type
from streaming.explain.time_travel.row_types import AssignmentRow
from streaming.explain.time_travel.rows import (
    group_row,
    offset_rows,
    quarantined_row,
    utc,
)
from tests.logic.driver import Driven, Joined, reading


def test_a_member_has_its_topics_and_the_number_of_its_partitions() -> None:
    driven = Driven()
    (member,) = driven.join_with_members(1, protocols=reading("orders", "bills"))
    assignment = Assignment([TopicPartition("bills", 1), TopicPartition("orders", 0)])
    driven.sync(member, {member.member_id: encode_assignment(assignment)})
    (row,) = rows_of_type(driven.group).members(driven.group)
    assert (row.member_id, row.is_leader, row.assigned_partitions) == (member.member_id, True, 2)
    assert row.subscribed_topics == ["bills", "orders"]
    assert list(rows_of_type(driven.group).assignments(driven.group)) == [
        AssignmentRow(driven.group_id, member.member_id, "bills", 1),
        AssignmentRow(driven.group_id, member.member_id, "orders", 0),
    ]


def test_bytes_that_are_no_assignment_give_no_rows() -> None:
    member = Member("m", None, "c", "h", 1, 1, [Protocol("range", b"?")], b"\x00")
    group = Group("g", "0-0", ClassicGroup(protocol_type="consumer", protocol_name="range", members={"m": member}))
    (row,) = rows_of_type(group).members(group)
    assert (row.subscribed_topics, row.assigned_partitions, list(rows_of_type(group).assignments(group))) == (
        None,
        None,
        [],
    )


def test_another_protocol_type_has_members_but_no_topics() -> None:
    driven = Driven()
    driven.stable_group(1, protocol_type="connect")
    (row,) = rows_of_type(driven.group).members(driven.group)
    assert (row.subscribed_topics, row.assigned_partitions) == (None, None)
    assert list(rows_of_type(driven.group).assignments(driven.group)) == []


def test_an_offset_of_an_open_transaction_names_its_producer() -> None:
    driven = Driven()
    driven.commit(offsets={("topic", 0): 5})
    driven.commit_in_transaction({("topic", 0): 6}, Joined(""), producer_id=7)
    rows = list(offset_rows(driven.group))
    assert [(row.offset, row.producer_id) for row in rows] == [(5, None), (6, 7)]
    assert [row.sequence for row in rows] == [2, 3]
    assert (group_row(driven.group).offsets, group_row(driven.group).open_transactions) == (1, 1)


def test_an_offset_of_an_earlier_release_has_no_sequence_number() -> None:
    group = Group("g", "0-0", offsets={"topic": {0: CommittedOffset(1, None, "", 0, None)}})
    assert [row.sequence for row in offset_rows(group)] == [None]


def test_a_time_that_a_client_has_chosen_is_cut_to_what_a_timestamp_can_be() -> None:
    far = CommittedOffset(1, None, "", -5, 2**63 - 1)
    (row,) = offset_rows(Group("g", "0-0", offsets={"topic": {0: far}}))
    assert row.committed_at == datetime(1970, 1, 1, tzinfo=UTC)
    assert row.expires_at is not None
    assert row.expires_at.year == 9999
    assert utc(1_700_000_000_123) == datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=UTC)


def test_a_group_has_the_time_since_which_it_is_in_its_state() -> None:
    driven = Driven()
    driven.stable_group(2)
    row = group_row(driven.group)
    assert (row.state, row.state_since, row.members) == (State.STABLE.value, utc(driven.now), 2)
    assert (row.generation, row.protocol_type, row.known) == (1, "consumer", "all")


def test_of_a_quarantined_group_nothing_but_that_is_known() -> None:
    row = quarantined_row("g")
    assert (row.state, row.known, row.generation, row.members) == ("Quarantined", "nothing", None, None)
