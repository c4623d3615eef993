"""The table of rebalances has what the story tells, once for each rebalance that has ended."""

from collections.abc import Iterable

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from coordinator_logic.groups.classic.records import GenerationStarted
from coordinator_logic.records import JournalEntry
from streaming.explain.story.of_all_groups import RebalancesOfAllGroups
from streaming.explain.tables.rebalance_rows import RebalanceRow, rebalance_rows
from streaming.explain.time_travel.rows import utc
from tests.explain.story.test_story import assigned, leaving
from tests.explain.time_travel.test_group_history import played
from tests.logic.driver import GROUP_ID, SESSION_MS, Driven, joined, reading
from tests.logic.groups.consumer.driver import Consumer, DrivenConsumers
from tests.logic.strategies import STORIES, Move
from tests.support.properties import examples


def rows(journal: Iterable[JournalEntry], time: int | None = None) -> list[RebalanceRow]:
    """The rows of the group whose journal this is."""
    return list(rebalance_rows(GROUP_ID, [msgspec.json.encode(entry) for entry in journal], time))


@given(moves=STORIES, share=st.floats(0, 1, exclude_max=True))
@examples(60)
def test_the_rows_are_the_rebalances_that_events_tells_as_of_any_time(moves: list[Move], share: float) -> None:
    driven, _ = played(moves)
    events = RebalancesOfAllGroups()
    told = [one.rebalance for entry in driven.journal for one in events.add(entry)]
    assert len(rows([*driven.journal, *driven.journal])) == len(told)
    if not driven.journal:
        return
    time = driven.journal[int(share * len(driven.journal))].timestamp
    found = rows(driven.journal, time)
    assert found == rows(entry for entry in driven.journal if entry.timestamp <= time)
    assert [(row.began, row.trigger, row.generation) for row in found] == [
        (utc(one.began), one.cause.trigger.value, one.generation)
        for one in told
        if one.ended is not None and one.ended <= time
    ]


def test_a_row_has_the_cause_the_phases_the_members_and_what_moved() -> None:
    driven = Driven()
    members = assigned(driven, driven.join_with_members(2, protocols=reading("orders")), {0: (0, 1), 1: (2, 3)})
    first, second = members
    began = driven.now + 1_000
    driven.sleep(1_000)
    driven.send("LeaveGroup", leaving(second), version=5, client="client-1")
    driven.sleep(200)
    alone = joined(driven.rejoin(first))
    driven.sleep(30)
    assigned(driven, [alone], {0: (0, 1, 2, 3)})
    _, row = rows(driven.journal)
    (begin,) = [entry for entry in driven.journal if entry.timestamp == began and "StateChanged" in str(entry.record)]
    assert row == RebalanceRow(
        group_id=GROUP_ID,
        group_type="classic",
        generation=2,
        trigger="member left",
        is_certain=False,
        other_triggers=["poll interval exceeded"],
        member_id=second.member_id,
        client="client-1 at /127.0.0.1",
        reason="its client gave no reason",
        began=utc(began),
        joined=utc(began + 200),
        ended=utc(began + 230),
        joining_ms=200,
        assigning_ms=30,
        is_interrupted=False,
        members_before=2,
        members_after=1,
        came=[],
        went=[second.member_id],
        partitions=4,
        moved=2,
        moved_needlessly=0,
        incarnation=begin.incarnation,
        sequence=begin.sequence,
    )


def test_a_rebalance_that_another_one_interrupts_has_ended() -> None:
    driven = Driven()
    driven.join_with_members(2)
    driven.join_new("newcomer")
    (row,) = rows(driven.journal)
    assert (row.is_interrupted, row.generation, row.members_after) == (True, 1, 2)
    assert row.ended == utc(driven.now)


def test_a_rebalance_that_goes_on_has_no_row() -> None:
    driven = Driven()
    driven.stable_group(1)
    driven.join_new("newcomer")
    assert [row.generation for row in rows(driven.journal)] == [1]


def test_a_consumer_group_has_its_epochs_in_place_of_generations() -> None:
    driven = DrivenConsumers()
    a = Consumer(driven, "a").join("t", topics={"t": 2})
    b = Consumer(driven, "b").join("t")
    driven.converge(a, b)
    found = rows(driven.journal)
    assert [(row.group_type, row.generation, row.members_before, row.members_after) for row in found] == [
        ("consumer", 2, 0, 1),
        ("consumer", 3, 1, 2),
    ]
    assert (found[-1].came, found[-1].moved, found[-1].moved_needlessly) == (["b"], 1, 0)


def test_of_a_journal_that_begins_later_the_numbers_of_members_are_not_known() -> None:
    driven = Driven()
    first, second = driven.stable_group(2)
    skipped = len(driven.journal)
    driven.sleep_with_heartbeats(SESSION_MS + 1, first)
    driven.sync_all([joined(driven.rejoin(first))])
    (row,) = rows(driven.journal[skipped:])
    assert (row.members_before, row.members_after, row.client, row.moved) == (None, None, None, None)
    assert (row.trigger, row.member_id, row.went) == ("session expired", second.member_id, [second.member_id])


def test_of_two_histories_the_one_of_the_newer_coordinator_holds() -> None:
    driven = Driven()
    driven.stable_group(1)
    other = [
        msgspec.structs.replace(entry, job_epoch=2, record=GenerationStarted(7, "range"))
        if isinstance(entry.record, GenerationStarted)
        else msgspec.structs.replace(entry, job_epoch=2)
        for entry in driven.journal
    ]
    assert [row.generation for row in rows([*driven.journal, *other])] == [7]


def test_a_record_that_is_no_entry_is_left_out() -> None:
    driven = Driven()
    driven.stable_group(1)
    values = [None, b"{", *map(msgspec.json.encode, driven.journal)]
    assert len(list(rebalance_rows(GROUP_ID, values))) == 1
