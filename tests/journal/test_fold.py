"""Groups that are folded from a journal: whole, cut at either end, after a backup, and with two histories."""

from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_logic import snapshot
from coordinator_logic.config import LOGIC_VERSION
from coordinator_logic.group import Group
from coordinator_logic.groups.classic.records import GenerationStarted, MemberAdded, StateChanged
from coordinator_logic.messages import SetGroupConfigRequest
from coordinator_logic.records import JournalEntry, OffsetsCommitted
from coordinator_logic.states import State
from coordinator_logic.timing.loading import load
from streaming.journal.fold import Base, GroupFold
from streaming.journal.folded_group import FoldedGroup, Known
from streaming.journal.histories import last_history
from streaming.journal.turns import is_cut
from tests.logic.driver import Driven
from tests.logic.invariants.of_groups import GROUP_INVARIANTS
from tests.logic.invariants.of_journals import recorded
from tests.logic.strategies import STORIES, Move, Story
from tests.support.parts import classic
from tests.support.properties import examples

THOROUGH = examples(120)
NOW = 2_000_000


class Folded(NamedTuple):
    """A folded group, and what the fold knows of its entries."""

    group: Group | None
    known: Known
    applied: dict[int, int]
    is_forked: bool
    sequence: int


def folded(entries: list[JournalEntry], base: Group | None = None, read: int = 0) -> Folded:
    fold = GroupFold(FoldedGroup(base), Base(base, {0: read}), compares=True)
    for entry in entries:
        fold.add(entry)
    fold.finish()
    found = fold.observer
    found.retain_offsets_from(NOW)
    return Folded(found.group, found.known, found.applied, fold.is_forked, fold.sequence)


EACH_RELEASE = pytest.mark.parametrize("logic_version", [0, LOGIC_VERSION])
"""Entries of earlier releases do not say which one ends its turn."""


def played(moves: list[Move], logic_version: int = LOGIC_VERSION) -> tuple[Driven, list[tuple[bytes | None, int]]]:
    """A story, and the group and the offset after the last request after each of its moves."""
    driven = Driven(offsets_retention_minutes=1, logic_version=logic_version)
    story = Story(driven)
    moments = [(driven.snapshot, 0)]
    for move in moves:
        story.play(move)
        moments.append((driven.snapshot, driven.log[-1].place.offset + 1 if driven.log else 0))
    return driven, moments


def agrees(group: Group | None, stored: bytes | None) -> bool:
    if group is None or stored is None:
        return group is None and stored is None
    return recorded(group) == recorded(snapshot.decode(stored))


@given(moves=STORIES, repeated=st.integers(0, 200))
@THOROUGH
def test_a_whole_journal_gives_the_group(moves: list[Move], repeated: int) -> None:
    driven, _ = played(moves)
    journal = driven.journal
    fold = folded(journal + journal[repeated % (len(journal) + 1) :])
    assert agrees(fold.group, driven.snapshot)
    assert fold.known is Known.ALL
    assert not fold.is_forked


@given(moves=STORIES, stop=st.integers(0, 100), cut=st.integers(0, 200))
@THOROUGH
def test_a_backup_and_the_journal_after_it_give_the_group(moves: list[Move], stop: int, cut: int) -> None:
    driven, moments = played(moves)
    stored, read = moments[stop % len(moments)]
    base = None if stored is None else snapshot.decode(stored)
    sequence = (None, 0) if base is None else (base.incarnation, base.sequence)
    after = next(
        (i for i, each in enumerate(driven.journal) if (each.incarnation, each.sequence) == sequence),
        -1,
    )
    # What the backup has already may be in the journal or not.
    journal = driven.journal[cut % (after + 2) if base is not None else 0 :]
    fold = folded(journal, base, read)
    assert agrees(fold.group, driven.snapshot)
    assert fold.known is Known.ALL


@given(moves=STORIES, cut=st.integers(1, 200))
@THOROUGH
def test_a_journal_without_its_beginning_gives_what_it_says_and_nothing_else(moves: list[Move], cut: int) -> None:
    driven, _ = played(moves)
    journal = driven.journal[cut % (len(driven.journal) + 1) :]
    fold = folded(journal)
    group = fold.group
    if group is None:
        return
    assert driven.snapshot is not None
    actual = driven.group
    for topic, partition, committed in group.committed_offsets():
        assert actual.offsets[topic][partition] == committed
    if fold.known is Known.OFFSETS:
        assert (group.state, classic(group).members) == (State.EMPTY, {})
        assert group.generation <= actual.generation
    else:
        # The protocol type of a group without members may be missing, and matters to nobody.
        group.part.protocol_type = actual.part.protocol_type
        assert recorded(group)[2:10] == recorded(actual)[2:10]
    load(group, driven.now, driven.config)
    for holds in GROUP_INVARIANTS:
        holds(group)


@EACH_RELEASE
@given(moves=STORIES, end=st.integers(0, 200))
@THOROUGH
def test_a_journal_that_ends_within_a_turn_gives_a_sound_group(logic_version: int, moves: list[Move], end: int) -> None:
    driven, _ = played(moves, logic_version)
    fold = folded(driven.journal[: end % (len(driven.journal) + 1)])
    if fold.group is None:
        return
    load(fold.group, driven.now, driven.config)
    for holds in GROUP_INVARIANTS:
        holds(fold.group)


@given(moves=STORIES, end=st.integers(0, 200))
@THOROUGH
def test_a_journal_that_ends_within_a_turn_gives_the_group_before_it(moves: list[Move], end: int) -> None:
    driven, _ = played(moves)
    journal = driven.journal[: end % (len(driven.journal) + 1)]
    whole = next((place for place in range(len(journal), 0, -1) if journal[place - 1].ends_turn), 0)
    cut, before = folded(journal).group, folded(journal[:whole]).group
    if cut is not None and cut.sequence == 0:
        # The turn that creates the group.
        assert before is None
        return
    assert (None if cut is None else recorded(cut)) == (None if before is None else recorded(before))


@EACH_RELEASE
@given(moves=STORIES)
@THOROUGH
def test_no_whole_turn_counts_as_cut(logic_version: int, moves: list[Move]) -> None:
    driven, _ = played(moves, logic_version)
    turns: list[list[JournalEntry]] = []
    for entry in driven.journal:
        if turns and turns[-1][-1].cause == entry.cause:
            turns[-1].append(entry)
        else:
            turns.append([entry])
    before: list[JournalEntry] = []
    for turn in turns:
        group = folded(before).group
        is_same_life = group is not None and group.incarnation == turn[0].incarnation
        assert not is_cut(turn, group if is_same_life else None), [entry.record for entry in turn]
        if logic_version:
            assert [entry.ends_turn for entry in turn] == [False] * (len(turn) - 1) + [True]
        before += turn


@EACH_RELEASE
def test_a_turn_whose_end_is_missing_is_left_out_and_its_request_is_not_applied(logic_version: int) -> None:
    driven = Driven(logic_version=logic_version)
    (member,) = driven.stable_group(1)
    driven.commit(member)
    whole = folded(driven.journal)
    ends = [i for i, record in enumerate(driven.records) if isinstance(record, GenerationStarted)]
    fold = folded(driven.journal[: ends[0] + 1])
    assert fold.group is not None
    assert (fold.group.state, fold.group.generation) == (State.PREPARING_REBALANCE, 0)
    assert member.member_id in classic(fold.group).members
    assert fold.sequence == ends[0] + 1 > fold.group.sequence
    assert whole.applied == {0: len(driven.log)}


@EACH_RELEASE
@pytest.mark.parametrize("members", [0, 2])
def test_a_part_of_a_reset_is_left_out_and_the_whole_is_applied(members: int, logic_version: int) -> None:
    driven = Driven(logic_version=logic_version)
    driven.commit(offsets={("topic", 0): 10, ("topic", 1): 20})
    if members:
        driven.stable_group(members)
    before = len(driven.journal)
    driven.reset_offsets({("topic", 0): 5, ("topic", 1): -1}, force=True)
    for end in range(before + 1, len(driven.journal)):
        fold = folded(driven.journal[:end])
        assert fold.group is not None
        assert [committed.offset for _, _, committed in fold.group.committed_offsets()] == [10, 20]
    whole = folded(driven.journal).group
    assert whole is not None
    assert recorded(whole) == recorded(driven.group)


def test_a_gap_leaves_the_generation_and_the_offsets() -> None:
    driven = Driven()
    (member,) = driven.stable_group(1)
    driven.commit(member)
    driven.rejoin(member)
    gap = next(i for i, record in enumerate(driven.records) if isinstance(record, StateChanged))
    fold = folded(driven.journal[:gap] + driven.journal[gap + 1 :])
    assert fold.known is Known.OFFSETS
    assert fold.group is not None
    assert (fold.group.state, fold.group.generation, classic(fold.group).members) == (
        State.EMPTY,
        driven.group.generation,
        {},
    )
    assert list(fold.group.committed_offsets()) == list(driven.group.committed_offsets())
    assert fold.group.part.state_timestamp == NOW


def test_members_are_known_again_once_none_is_left() -> None:
    driven = Driven()
    (member,) = driven.stable_group(1)
    driven.leave(member)
    driven.stable_group(1)
    added = [i for i, record in enumerate(driven.records) if isinstance(record, MemberAdded)]
    fold = folded(driven.journal[added[0] + 1 :])
    assert fold.known is Known.MEMBERS
    assert fold.group is not None
    assert recorded(fold.group) == recorded(driven.group)


def committed(entry: JournalEntry, offset: int, sequence: int) -> JournalEntry:
    """A commit's entry, of another offset."""
    assert isinstance(entry.record, OffsetsCommitted)
    (before,) = entry.record.offsets
    record = OffsetsCommitted([msgspec.structs.replace(before, offset=offset)])
    return msgspec.structs.replace(entry, sequence=sequence, record=record)


def test_of_two_histories_the_later_one_holds() -> None:
    driven = Driven()
    for offset in (1, 2, 3):
        driven.commit(offsets={("topic", 0): offset})
    first = driven.journal
    other = [committed(first[-1], 20, first[-2].sequence)]
    fold = folded([*first, *first[:-2], *other])
    assert fold.is_forked
    told = last_history([*first, *first[:-2], *other])
    assert [entry.sequence for entry in told] == [entry.sequence for entry in first[:-1]]
    group = folded(told).group
    assert group is not None
    assert [kept.offset for _, _, kept in group.committed_offsets()] == [20]


def test_what_an_older_job_writes_late_is_void() -> None:
    driven = Driven()
    for offset in (1, 2, 3):
        driven.commit(offsets={("topic", 0): offset})
    first = driven.journal
    newer = [msgspec.structs.replace(entry, job_epoch=2) for entry in first[:-1]]
    late = committed(first[-1], 30, first[-1].sequence)
    assert folded([*newer, late]).is_forked
    assert last_history([*newer, late]) == newer
    assert last_history([*newer, late, msgspec.structs.replace(first[-1], job_epoch=2)])[-1].record == first[-1].record


def test_a_history_that_is_told_again_is_no_second_one() -> None:
    driven = Driven()
    driven.stable_group(2)
    assert last_history([*driven.journal, *driven.journal[3:]]) == driven.journal


def test_a_configuration_is_known_although_the_journal_begins_later() -> None:
    driven = Driven()
    driven.stable_group(1)
    driven.send("SetGroupConfig", SetGroupConfigRequest(driven.group_id, {"consumer.session.timeout.ms": "50000"}))
    whole, late = folded(driven.journal), folded(driven.journal[-1:])
    assert (whole.known, late.known) == (Known.ALL, Known.OFFSETS)
    for fold in (whole, late):
        assert fold.group is not None
        assert fold.group.configs == driven.group.configs == {"consumer.session.timeout.ms": 50_000}
