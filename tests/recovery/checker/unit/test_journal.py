"""The journal, beside the state and the answers of a small group that the real state machine has played."""

import msgspec
import pytest

from coordinator_logic.embedded_protocols import Assignment, TopicPartition, encode_assignment
from coordinator_logic.errors import Error
from coordinator_logic.group import Group
from coordinator_logic.records import entry_decoder
from tests.logic.driver import Driven, Joined
from tests.recovery.checker.history import Function, Kind, Position
from tests.recovery.checker.operations import Rule
from tests.recovery.checker.unit.told import Did, broken, did, join, sync


class Played:
    """A group with two members, in which the leader has committed offset 7."""

    def __init__(self) -> None:
        self.driven = Driven(group_id="billing")
        self.members: list[Joined] = self.driven.stable_group(2)
        self.driven.commit(self.members[0], {("orders", 0): 7})
        self.commit_id = self.driven.log[-1].address.correlation_id
        self.journal = [msgspec.json.encode(entry) for entry in self.driven.journal]
        self.state: dict[str, Group | None] = {"billing": self.driven.group}

    def broken(self, *done: Did) -> set[Rule]:
        return broken(*done, journal=self.journal, state=self.state)

    def committed(self, offset: int, generation: int = 1, kind: Kind = Kind.OK) -> Did:
        """The commit as a client recorded it."""
        got = {} if kind is Kind.OK else {"error": Error.ILLEGAL_GENERATION}
        value = [Position("orders", 0, offset)]
        return did(Function.COMMIT, 0, 10, kind, got, value=value, generation=generation, correlation_id=self.commit_id)


@pytest.fixture
def played() -> Played:
    return Played()


def test_a_journal_with_repetitions_is_accepted(played: Played) -> None:
    played.journal += played.journal[3:]
    assert played.broken() == set()


def test_a_missing_entry_is_found(played: Played) -> None:
    del played.journal[4]
    assert Rule.UNBROKEN_JOURNAL in played.broken()


def test_a_repetition_with_other_bytes_is_a_fork(played: Played) -> None:
    entry = entry_decoder().decode(played.journal[4])
    played.journal.append(msgspec.json.encode(msgspec.structs.replace(entry, timestamp=1)))
    assert played.broken() == {Rule.UNBROKEN_JOURNAL}


def test_an_entry_that_cannot_be_read_is_found(played: Played) -> None:
    played.journal.append(b"{}")
    assert played.broken() == {Rule.UNBROKEN_JOURNAL}


def test_a_group_that_is_created_without_being_deleted_is_a_fork(played: Played) -> None:
    created = entry_decoder().decode(played.journal[0])
    played.journal.append(msgspec.json.encode(msgspec.structs.replace(created, incarnation="0-99")))
    assert Rule.UNBROKEN_JOURNAL in played.broken()


def test_a_group_that_was_deleted_is_created_again() -> None:
    driven = Driven(group_id="billing")
    driven.empty_group()
    driven.delete()
    driven.stable_group(1)
    journal = [msgspec.json.encode(entry) for entry in driven.journal]
    assert broken(journal=journal, state={"billing": driven.group}) == set()
    assert broken(journal=journal, state={"billing": None}) == {Rule.JOURNAL_IS_STATE}


def test_a_state_that_the_journal_does_not_fold_to_is_found(played: Played) -> None:
    state = played.driven.group
    state.part.generation += 1
    played.state = {"billing": state}
    assert played.broken() == {Rule.JOURNAL_IS_STATE}
    played.state = {"billing": None}
    assert Rule.JOURNAL_IS_STATE in played.broken()


def test_a_group_whose_state_is_missing_is_found(played: Played) -> None:
    played.state = {"another": None}
    assert played.broken() == {Rule.JOURNAL_IS_STATE}


def test_an_acknowledged_commit_is_in_the_journal(played: Played) -> None:
    assert played.broken(played.committed(7)) == set()
    other = did(Function.COMMIT, 0, 10, value=[Position("orders", 1, 3)], correlation_id="another")
    assert Rule.JOURNAL_AND_ANSWERS in played.broken(played.committed(7), other)


def test_the_journal_has_the_offsets_that_were_acknowledged(played: Played) -> None:
    assert Rule.JOURNAL_AND_ANSWERS in played.broken(played.committed(8))


def test_a_refused_commit_is_not_in_the_journal(played: Played) -> None:
    assert Rule.JOURNAL_AND_ANSWERS in played.broken(played.committed(7, kind=Kind.FAIL))


def test_a_commit_is_applied_in_its_own_generation(played: Played) -> None:
    assert Rule.JOURNAL_AND_ANSWERS in played.broken(played.committed(7, generation=0))


def test_a_member_is_told_of_generations_that_the_journal_has(played: Played) -> None:
    leader, follower = (member.member_id for member in played.members)
    commit = played.committed(7)
    joined = [join(leader, 1, 20, 30, leader=leader), join(follower, 1, 20, 31, leader=leader)]
    assert played.broken(commit, *joined) == set()
    assert played.broken(commit, join("nobody", 1, 20, 30)) == {Rule.JOURNAL_AND_ANSWERS}
    assert played.broken(commit, join(leader, 2, 20, 30, leader=leader)) == {Rule.JOURNAL_AND_ANSWERS}


def test_a_member_is_told_the_assignment_that_the_journal_has() -> None:
    driven = Driven(group_id="billing")
    (member,) = driven.join_with_members(1)
    assigned = encode_assignment(Assignment([TopicPartition("orders", 0)]))
    driven.sync(member, {member.member_id: assigned})
    journal = [msgspec.json.encode(entry) for entry in driven.journal]
    joined = join(member.member_id, 1, 0, 10, leader=member.member_id)
    assert broken(joined, sync(member.member_id, 1, 20, 30, 0), journal=journal) == set()
    assert broken(joined, sync(member.member_id, 1, 20, 30, 1), journal=journal) == {Rule.JOURNAL_AND_ANSWERS}
