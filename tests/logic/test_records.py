"""The journal: it has every change once, with its cause, and folds to the group."""

import msgspec
import pytest

from coordinator_logic.group import Group
from coordinator_logic.group.record import Record
from coordinator_logic.groups.classic.records import MemberUpdated, StateChanged
from coordinator_logic.records import (
    GroupCreated,
    MemberRemoved,
    RequestCause,
    StaticMemberReplaced,
    TimerCause,
    apply,
    entry_decoder,
    fold,
)
from coordinator_logic.states import State
from tests.logic.driver import GROUP_ID, SESSION_MS, Driven
from tests.support.parts import classic


def test_an_entry_names_the_request_that_caused_it(driven: Driven) -> None:
    answer = driven.join(version=3, client="the-client")
    address, place = answer.request.address, answer.request.place
    cause = RequestCause(
        "JoinGroup", 3, "", "the-client", "/127.0.0.1", address.correlation_id, place.partition, place.offset
    )
    assert {entry.cause for entry in driven.journal} == {cause}
    assert {(entry.group_id, entry.timestamp) for entry in driven.journal} == {(GROUP_ID, driven.now)}
    assert [entry.sequence for entry in driven.journal] == [1, 2, 3, 4]


def test_a_transition_into_a_rebalance_has_its_reason(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    driven.rejoin(member)
    reasons = [record.reason for record in driven.records if isinstance(record, StateChanged)]
    assert f"leader {member.member_id} rejoined" in reasons


def test_repeated_entries_change_nothing(driven: Driven) -> None:
    driven.stable_group(2)
    journal = driven.journal
    for cut in range(len(journal)):
        assert fold(journal + journal[cut:]) == fold(journal[:cut] + journal) == fold(journal)


def test_a_journal_of_several_incarnations_folds_to_the_last(driven: Driven) -> None:
    driven.commit()
    driven.delete()
    assert fold(driven.journal) is None
    driven.stable_group(2)
    folded = fold(driven.journal)
    assert folded is not None
    assert (folded.state, folded.offsets, len(classic(folded).members)) == (State.STABLE, {}, 2)
    driven.sleep(SESSION_MS)
    driven.delete()
    assert fold(driven.journal) is None


@pytest.mark.parametrize(
    "record",
    [
        MemberUpdated("unknown", 1, 1, []),
        MemberRemoved("unknown", None, "left"),
        StaticMemberReplaced("instance", "unknown", "new"),
    ],
)
def test_a_record_about_a_member_that_does_not_exist_is_a_defect(record: Record) -> None:
    with pytest.raises(KeyError, match="unknown"):
        apply(Group("g", "0-0"), record, 0)


def test_an_empty_journal_folds_to_no_group() -> None:
    assert fold([]) is None


def test_a_journal_without_its_beginning_folds_to_no_group(driven: Driven) -> None:
    driven.stable_group(1)
    assert fold(driven.journal[1:]) is None


def test_an_entry_is_json_with_its_type(driven: Driven) -> None:
    driven.stable_group(1)
    driven.sleep(SESSION_MS)
    assert {type(entry.cause) for entry in driven.journal} == {RequestCause, TimerCause}
    for entry in driven.journal:
        assert entry_decoder().decode(msgspec.json.encode(entry)) == entry
    first = msgspec.json.decode(msgspec.json.encode(driven.journal[0]))
    assert first["record"] == {"type": GroupCreated.__name__}
    assert (first["groupId"], first["sequence"], first["cause"]["type"]) == (GROUP_ID, 1, "Request")
