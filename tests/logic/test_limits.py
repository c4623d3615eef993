"""The sizes of what a group stores for its members are limited, and no sane group reaches the limits."""

from typing import Any

import msgspec
import pytest

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.errors import Error
from coordinator_logic.messages import JoinGroupRequest, LeaveGroupRequest, LeavingMember
from coordinator_logic.records import MemberRemoved, RequestCause
from coordinator_logic.states import State
from tests.logic.driver import DELAY_MS, SESSION_MS, Driven, joined, listing
from tests.support.parts import classic

DEFAULTS = CoordinatorConfig()
LONGEST = "i" * DEFAULTS.group_max_identifier_bytes
KILOBYTE = 1024


def test_clients_with_ids_of_300_kb_do_not_grow_the_group(driven: Driven) -> None:
    driven.stable_group(1)
    size = len(driven.snapshot or b"")
    for number in range(74):
        answer = driven.join(client=f"{number}" + "c" * 300_000, version=3)
        assert answer.error is Error.INVALID_REQUEST
    assert len(driven.snapshot or b"") < size + KILOBYTE
    assert driven.state() is State.STABLE


@pytest.mark.parametrize(
    "join",
    [
        {"client": LONGEST},
        {"client": "ü" * (len(LONGEST) // 2)},
        {"instance": LONGEST},
        {"protocol_type": LONGEST},
        {"protocols": listing(LONGEST)},
        {"protocols": listing(*map(str, range(DEFAULTS.group_max_protocols)))},
        {"protocols": listing("range", metadata=bytes(DEFAULTS.group_max_metadata_bytes))},
    ],
)
def test_a_member_may_be_as_large_as_the_limits(driven: Driven, join: dict[str, Any]) -> None:
    assert driven.join(**join, version=3 if "instance" not in join else 9).parked


@pytest.mark.parametrize(
    "join",
    [
        {"client": LONGEST + "i"},
        {"client": "ü" * (len(LONGEST) // 2) + "i"},
        {"instance": LONGEST + "i"},
        {"protocol_type": LONGEST + "i"},
        {"protocols": listing("range", LONGEST + "i")},
        {"protocols": listing(*map(str, range(DEFAULTS.group_max_protocols + 1)))},
        {"protocols": listing("range", metadata=bytes(DEFAULTS.group_max_metadata_bytes + 1))},
    ],
)
def test_a_larger_member_is_refused_and_changes_nothing(driven: Driven, join: dict[str, Any]) -> None:
    for version in (3, 9):
        assert driven.join(**join, version=version).error is Error.INVALID_REQUEST
    assert not driven.exists


def test_a_client_host_is_limited_too(driven: Driven) -> None:
    body = JoinGroupRequest(driven.group_id, SESSION_MS, "consumer", listing("range"))
    assert driven.send("JoinGroup", body, host=LONGEST + "i").error is Error.INVALID_REQUEST


def test_a_member_may_not_grow_beyond_the_limits_when_it_rejoins(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    too_large = listing("range", metadata=bytes(DEFAULTS.group_max_metadata_bytes + 1))
    assert driven.rejoin(member, protocols=too_large).error is Error.INVALID_REQUEST
    assert driven.heartbeat(member).error is Error.NONE
    assert driven.state() is State.STABLE


def test_a_member_of_an_older_release_with_a_longer_client_id_goes_on() -> None:
    driven = Driven(group_max_identifier_bytes=5_000)
    answer = driven.join_new(client="c" * 5_000)
    driven.sleep(DELAY_MS)
    member = joined(answer)
    driven.sync_all([member])
    driven.config = msgspec.structs.replace(driven.config, group_max_identifier_bytes=1_024)
    assert driven.heartbeat(member).error is Error.NONE
    driven.rejoin(member, client="c" * 5_000)
    assert joined(driven.rejoin(member, client="c" * 5_000)).member_id == member.member_id


# ---- handed-out member ids -------------------------------------------------------------------------------------


def test_no_more_member_ids_are_handed_out_than_the_limit_until_some_expire() -> None:
    driven = Driven(group_max_pending_member_ids=3)
    (member,) = driven.stable_group(1)
    ids = [driven.join().body.member_id for _ in range(3)]
    refused = driven.join()
    assert (refused.error, refused.body.member_id) == (Error.GROUP_MAX_SIZE_REACHED, "")
    assert list(classic(driven.group).pending_joins) == ids
    assert driven.join(ids[0]).parked, "an id that was handed out can be used"
    assert driven.join().error is Error.MEMBER_ID_REQUIRED
    driven.sleep_with_heartbeats(SESSION_MS, member)
    assert driven.join().error is Error.MEMBER_ID_REQUIRED


def test_members_that_need_no_member_id_may_join_at_the_limit() -> None:
    driven = Driven(group_max_pending_member_ids=1)
    driven.join()
    assert driven.join(version=3).parked
    assert driven.join(instance="instance").parked


def test_handed_out_member_ids_count_for_the_size_of_the_group() -> None:
    driven = Driven(group_max_bytes=20 * KILOBYTE)
    (member,) = driven.stable_group(1)
    ids = []
    while (answer := driven.join(client=LONGEST)).error is Error.MEMBER_ID_REQUIRED:
        ids.append(answer.body.member_id)
        assert len(driven.snapshot or b"") < 21 * KILOBYTE
    assert (answer.error, answer.body.member_id) == (Error.GROUP_MAX_SIZE_REACHED, "")
    assert len(ids) > 3
    large = listing("range", metadata=bytes(4 * KILOBYTE))
    assert driven.join(version=3, protocols=large).error is Error.GROUP_MAX_SIZE_REACHED, "members have no more room"
    assert driven.heartbeat(member).error is Error.NONE
    assert driven.join(ids[0], client=LONGEST).parked, "an id that was handed out can be used"
    assert driven.rejoin(member).parked
    driven.sleep(SESSION_MS)
    assert list(classic(driven.group).pending_joins) == [], "the others have expired"
    assert driven.join(client=LONGEST).error is Error.MEMBER_ID_REQUIRED


def test_a_group_without_members_is_limited_too() -> None:
    driven = Driven(group_max_bytes=10 * KILOBYTE)
    while (answer := driven.join(client=LONGEST)).error is Error.MEMBER_ID_REQUIRED:
        assert len(driven.snapshot or b"") < 11 * KILOBYTE
    assert answer.error is Error.GROUP_MAX_SIZE_REACHED


# ---- the whole group -------------------------------------------------------------------------------------------


def test_a_group_of_kafka_streams_with_much_metadata_works(driven: Driven) -> None:
    metadata = bytes(300 * KILOBYTE)
    members = driven.stable_group(20, protocols=listing("stream", metadata=metadata), protocol_type="stream")
    assert all(driven.heartbeat(member).error is Error.NONE for member in members)


def test_a_join_that_would_make_the_group_too_large_is_refused() -> None:
    driven = Driven(group_max_bytes=10 * KILOBYTE)
    large = listing("range", metadata=bytes(4 * KILOBYTE))
    members = driven.stable_group(2, protocols=large)
    assert driven.join(version=3, protocols=large).error is Error.GROUP_MAX_SIZE_REACHED
    assert driven.join(protocols=large).error is Error.GROUP_MAX_SIZE_REACHED, "before an id is handed out"
    assert driven.state() is State.STABLE
    larger = listing("range", metadata=bytes(6 * KILOBYTE))
    assert driven.rejoin(members[1], protocols=larger).error is Error.GROUP_MAX_SIZE_REACHED
    assert driven.state() is State.STABLE
    assert driven.join(version=3).parked, "a small member has room"


def test_a_group_that_is_over_a_lowered_limit_goes_on() -> None:
    driven = Driven()
    large = listing("range", metadata=bytes(4 * KILOBYTE))
    leader, follower = driven.stable_group(2, static=1, protocols=large)
    driven.config = msgspec.structs.replace(driven.config, group_max_bytes=KILOBYTE)
    assert driven.heartbeat(follower).error is Error.NONE
    assert driven.join(instance=leader.group_instance_id, protocols=large).error is Error.NONE, "its place is kept"
    assert driven.leave(follower).error is Error.NONE


def test_an_assignment_beyond_the_limit_is_refused_and_its_followers_hear_at_once() -> None:
    driven = Driven(group_max_assignment_bytes=10)
    leader, follower = driven.join_with_members(2)
    parked = driven.sync(follower)
    too_large = {leader.member_id: bytes(10), follower.member_id: bytes(11)}
    assert driven.sync(leader, too_large).error is Error.INVALID_REQUEST
    assert parked.error is Error.INVALID_REQUEST
    assert driven.state() is State.PREPARING_REBALANCE
    rejoined = [driven.rejoin(member) for member in (leader, follower)]
    assert {answer.error for answer in rejoined} == {Error.NONE}


def test_in_a_batch_of_an_earlier_release_the_generation_waits_for_its_leader() -> None:
    driven = Driven(group_max_assignment_bytes=10, logic_version=0)
    leader, follower = driven.join_with_members(2)
    parked = driven.sync(follower)
    too_large = {leader.member_id: bytes(10), follower.member_id: bytes(11)}
    assert driven.sync(leader, too_large).error is Error.INVALID_REQUEST
    assert parked.parked
    assert driven.state() is State.COMPLETING_REBALANCE
    assert driven.sync(leader, {follower.member_id: b"assignment"}).error is Error.NONE
    assert parked.body.assignment == b"assignment"


def test_assignments_that_would_make_the_group_too_large_are_refused() -> None:
    driven = Driven(group_max_bytes=KILOBYTE)
    leader, follower = driven.join_with_members(2)
    halves = {member.member_id: bytes(KILOBYTE // 2) for member in (leader, follower)}
    assert driven.sync(leader, halves).error is Error.INVALID_REQUEST


def test_an_assignment_for_nobody_does_not_count() -> None:
    driven = Driven(group_max_bytes=KILOBYTE)
    leader, _ = driven.join_with_members(2)
    assert driven.sync(leader, {"nobody": bytes(KILOBYTE)}).error is Error.NONE, "it is not stored"


# ---- the journal -----------------------------------------------------------------------------------------------


def test_the_journal_cuts_the_ids_of_a_request_that_causes_many_changes(driven: Driven) -> None:
    members = driven.stable_group(20)
    leaving = LeaveGroupRequest(driven.group_id, "m" * 300_000, [LeavingMember(m.member_id) for m in members])
    driven.send("LeaveGroup", leaving, client="c" * 300_000, host="h" * 300_000)
    causes = [entry.cause for entry in driven.journal if isinstance(entry.record, MemberRemoved)]
    assert len(causes) == 20
    for cause in causes:
        assert isinstance(cause, RequestCause)
        for identifier in (cause.member_id, cause.client_id, cause.client_host):
            assert len(identifier) < 2 * KILOBYTE
            assert identifier.endswith("…")


def test_generated_member_ids_are_never_cut(driven: Driven) -> None:
    member_id = driven.join(client=LONGEST).body.member_id
    driven.join(member_id, client=LONGEST)
    cause = driven.journal[-1].cause
    assert isinstance(cause, RequestCause)
    assert cause.member_id == member_id
