"""First joins: refusals, responses to new members, the maximum size of a group."""

from typing import Any

import pytest

from coordinator_logic.errors import Error
from coordinator_logic.events import Place
from coordinator_logic.groups.classic.records import LeaderElected, MemberAdded
from coordinator_logic.messages import JoinGroupRequest, JoinGroupResponse, Protocol
from coordinator_logic.records import GroupCreated
from coordinator_logic.states import State
from tests.logic.driver import DELAY_MS, NEW_MEMBER_MS, REBALANCE_MS, Answer, Driven, Joined, joined, listing
from tests.support.parts import classic


def refused(error: Error, member_id: str = "") -> JoinGroupResponse:
    """The response of every refusal: an error, perhaps the member id, and nothing else."""
    return JoinGroupResponse(error_code=error, member_id=member_id)


# ---- refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("member_id", ["", "a-member"])
def test_an_empty_group_id_is_refused_with_the_member_id(member_id: str) -> None:
    driven = Driven(group_id="")
    for session_ms in (5_000, 1):
        answer = driven.join(member_id, session_ms=session_ms)
        assert answer.body == refused(Error.INVALID_GROUP_ID, member_id), "the session timeout is checked later"
    assert not driven.exists


@pytest.mark.parametrize(("session_ms", "accepted"), [(9, False), (10, True), (600_000, True), (600_001, False)])
def test_the_session_timeout_must_be_within_the_bounds(driven: Driven, session_ms: int, accepted: bool) -> None:
    answer = driven.join(session_ms=session_ms)
    assert driven.exists is accepted
    if accepted:
        assert answer.error is Error.MEMBER_ID_REQUIRED
    else:
        assert answer.body == refused(Error.INVALID_SESSION_TIMEOUT)
        assert driven.join("echo", session_ms=session_ms).body.member_id == "echo"


@pytest.mark.parametrize("instance", [None, "instance"])
def test_an_unknown_member_id_does_not_create_a_group(driven: Driven, instance: str | None) -> None:
    assert driven.join("made-up", instance=instance).body == refused(Error.UNKNOWN_MEMBER_ID, "made-up")
    assert not driven.exists
    assert driven.journal == []


def test_a_member_id_that_was_not_handed_out_is_unknown(driven: Driven) -> None:
    driven.stable_group(1)
    assert driven.join("made-up").body == refused(Error.UNKNOWN_MEMBER_ID, "made-up")
    assert driven.state() is State.STABLE


def test_a_member_id_is_unknown_to_an_empty_group(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    driven.leave(member)
    assert driven.rejoin(member).body == refused(Error.UNKNOWN_MEMBER_ID, member.member_id)


def test_another_protocol_type_is_refused(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    assert driven.join(protocol_type="connect").body == refused(Error.INCONSISTENT_GROUP_PROTOCOL)
    assert driven.rejoin(member, protocol_type="connect").body == refused(
        Error.INCONSISTENT_GROUP_PROTOCOL, member.member_id
    )
    assert driven.state() is State.STABLE


@pytest.mark.parametrize("request_", [{"protocols": []}, {"protocol_type": ""}])
def test_a_first_join_without_type_or_protocols_is_refused_and_leaves_an_empty_group(
    driven: Driven, request_: dict[str, Any]
) -> None:
    assert driven.join(**request_).body == refused(Error.INCONSISTENT_GROUP_PROTOCOL)
    assert driven.state() is State.EMPTY
    assert driven.records == [GroupCreated()]


def test_protocols_without_overlap_are_refused_and_the_group_stays_stable(driven: Driven) -> None:
    first = driven.join(version=3, protocols=listing("range"))
    second = driven.join(version=3, protocols=listing("roundrobin"))
    assert second.body == refused(Error.INCONSISTENT_GROUP_PROTOCOL)
    driven.sleep(DELAY_MS)
    assert first.error is Error.NONE


@pytest.mark.parametrize("protocols", [[], listing("other")])
def test_a_handed_out_id_can_be_used_after_a_refusal(driven: Driven, protocols: list[Protocol]) -> None:
    driven.stable_group(1)
    member_id = driven.join().body.member_id
    assert driven.join(member_id, protocols=protocols).body == refused(Error.INCONSISTENT_GROUP_PROTOCOL, member_id)
    assert list(classic(driven.group).pending_joins) == [member_id]
    assert driven.join(member_id).parked


def test_an_empty_group_accepts_another_protocol_type(driven: Driven) -> None:
    driven.empty_group()
    assert driven.group.part.protocol_type == "consumer"
    answer = driven.join_new(protocol_type="connect", protocols=listing("default"))
    driven.sleep(DELAY_MS)
    assert (answer.body.protocol_type, answer.body.protocol_name) == ("connect", "default")


# ---- member ids ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(4, 10))
def test_a_dynamic_member_first_gets_an_id_and_nothing_else_changes(driven: Driven, version: int) -> None:
    answer = driven.join(version=version)
    assert answer.body == refused(Error.MEMBER_ID_REQUIRED, answer.body.member_id)
    assert answer.body.member_id
    assert driven.state() is State.EMPTY
    assert classic(driven.group).members == {}
    assert list(classic(driven.group).pending_joins) == [answer.body.member_id]
    assert driven.records == [GroupCreated()]


@pytest.mark.parametrize(
    ("version", "instance"), [*((v, None) for v in range(4)), *((v, "instance") for v in range(5, 10))]
)
def test_before_version_4_and_for_static_members_no_second_request_is_needed(
    driven: Driven, version: int, instance: str | None
) -> None:
    assert driven.join(version=version, instance=instance).parked
    assert driven.state() is State.PREPARING_REBALANCE


def test_handing_out_an_id_does_not_rebalance_a_stable_group(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    driven.join()
    assert driven.state() is State.STABLE
    assert driven.heartbeat(member).error is Error.NONE


def test_a_member_id_begins_with_the_client_id_or_the_instance_id(driven: Driven) -> None:
    assert driven.join(client="the-client").body.member_id.startswith("the-client-")
    assert driven.join(client="").body.member_id.startswith("-")
    static = driven.join(client="the-client", instance="the-instance")
    driven.sleep(2 * NEW_MEMBER_MS)
    assert static.body.member_id.startswith("the-instance-")


def test_a_member_id_follows_from_the_requests_place_in_the_log() -> None:
    body = JoinGroupRequest("the-group", 5_000, "consumer", listing("range"), 10_000)

    def member_id_at(place: Place, **config: Any) -> str:
        driven = Driven(**config)
        request = driven.request("JoinGroup", body)
        placed = type(request)(place, request.address, request.client_id, request.client_host, body)
        driven.step([placed], batch_time=place.timestamp)
        answer: Answer[JoinGroupResponse] = driven.answer_to(request)
        return answer.body.member_id

    place = Place(1_000_000, 2, 17)
    others = [Place(1_000_001, 2, 17), Place(1_000_000, 3, 17), Place(1_000_000, 2, 18)]
    assert member_id_at(place) == member_id_at(place) == "client-4b3961ea-b128-5ea2-8120-a4c4fb9e4781"
    ids = {member_id_at(p) for p in [place, *others]} | {member_id_at(place, requests_topic="other")}
    assert len(ids) == 5


def test_a_handed_out_id_used_with_an_instance_id_is_an_internal_error(driven: Driven) -> None:
    driven.stable_group(1)
    member_id = driven.join().body.member_id
    assert driven.join(member_id, instance="instance").body == refused(Error.UNKNOWN_SERVER_ERROR)
    assert list(classic(driven.group).pending_joins) == [member_id]


def test_a_join_with_a_handed_out_id_creates_the_member(driven: Driven) -> None:
    answer = driven.join_new()
    assert answer.parked
    assert list(classic(driven.group).pending_joins) == []
    assert classic(driven.group).leader in classic(driven.group).members


# ---- accepted --------------------------------------------------------------------------------------------------


def test_the_first_member_waits_for_the_delay_and_leads_generation_1(driven: Driven) -> None:
    answer = driven.join_new("c1")
    assert driven.sleep(DELAY_MS - 1) == []
    assert driven.sleep(1) == [answer]
    body = answer.body
    assert (body.error_code, body.generation_id, body.leader) == (0, 1, body.member_id)
    assert (body.protocol_type, body.protocol_name, body.skip_assignment) == ("consumer", "range", False)
    assert [(m.member_id, m.group_instance_id, m.metadata) for m in body.members] == [
        (body.member_id, None, b"subscription")
    ]
    assert driven.state() is State.COMPLETING_REBALANCE


def test_a_static_member_can_be_the_first(driven: Driven) -> None:
    answer = driven.join(instance="instance")
    driven.sleep(DELAY_MS)
    member = joined(answer)
    assert member.generation_id == 1
    assert [m.group_instance_id for m in answer.body.members] == ["instance"]


def test_followers_learn_the_generation_and_the_leader_but_not_the_members(driven: Driven) -> None:
    first, second = driven.join_new("c1"), driven.join_new("c2")
    driven.sleep(2 * DELAY_MS)
    assert first.body.generation_id == second.body.generation_id == 1
    assert first.body.leader == second.body.leader == first.body.member_id
    assert (second.body.protocol_type, second.body.protocol_name) == ("consumer", "range")
    assert [m.member_id for m in first.body.members] == [first.body.member_id, second.body.member_id]
    assert second.body.members == []


def test_a_version_without_a_rebalance_timeout_uses_the_session_timeout(driven: Driven) -> None:
    driven.join(version=0, rebalance_ms=-1, session_ms=7_000)
    (member,) = classic(driven.group).members.values()
    assert member.rebalance_timeout_ms == 7_000


def test_a_member_is_recorded_with_every_field_of_its_request(driven: Driven) -> None:
    protocols = listing("roundrobin", "range")
    driven.join(version=3, client="c", instance=None, protocols=protocols, session_ms=7_000, rebalance_ms=20_000)
    created, added, leader, _ = driven.records
    assert created == GroupCreated()
    assert isinstance(added, MemberAdded)
    assert added == MemberAdded(added.member_id, None, "c", "/127.0.0.1", 20_000, 7_000, "consumer", protocols)
    assert leader == LeaderElected(added.member_id)


# ---- capacity --------------------------------------------------------------------------------------------------


def split(answers: list[Answer[JoinGroupResponse]]) -> tuple[int, int]:
    """The number of members that wait or have joined, and the number refused for the group's size."""
    full = [answer for answer in answers if not answer.parked and answer.error is Error.GROUP_MAX_SIZE_REACHED]
    assert all(answer.body.member_id == "" for answer in full)
    assert all(answer.parked or answer.error is Error.NONE for answer in answers if answer not in full)
    return len(answers) - len(full), len(full)


def test_a_full_group_refuses_new_members() -> None:
    driven = Driven(group_max_size=10)
    answers = [driven.join(version=3, client=f"c{i}") for i in range(11)]
    assert split(answers) == (10, 1)
    assert not answers[10].parked
    for _ in range(2):
        driven.sleep(DELAY_MS)
    members = [joined(answer) for answer in answers[:10]]
    assert len(classic(driven.group).members) == 10
    rejoins = [driven.rejoin(member, version=3) for member in members] + [driven.join(version=3)]
    assert split(rejoins) == (10, 1)


def test_handed_out_ids_do_not_count_for_the_size() -> None:
    driven = Driven(group_max_size=10)
    ids = [driven.join(client=f"c{i}").body.member_id for i in range(11)]
    assert len(classic(driven.group).pending_joins) == 11
    answers = [driven.join(member_id) for member_id in ids]
    assert split(answers) == (10, 1)
    assert list(classic(driven.group).pending_joins) == [], "the refused id is dropped"
    driven.sleep(2 * DELAY_MS)
    assert driven.state() is State.COMPLETING_REBALANCE
    assert split([driven.join(member_id) for member_id in ids]) == (10, 1)


def test_static_members_count_for_the_size() -> None:
    driven = Driven(group_max_size=10)
    answers = [driven.join(instance=f"i{i}") for i in range(11)]
    assert split(answers) == (10, 1)
    for _ in range(2):
        driven.sleep(DELAY_MS)
    rejoins = [driven.rejoin(joined(answer)) for answer in answers[:10]] + [driven.join(instance="i10")]
    assert split(rejoins) == (10, 1)


def test_a_member_that_rejoins_after_too_many_others_loses_its_place() -> None:
    driven = Driven()
    members = driven.stable_group(3)
    driven.config = Driven(group_max_size=2).config
    first = driven.rejoin(members[0])
    second = driven.rejoin(members[1])
    third = driven.rejoin(members[2])
    assert third.body == refused(Error.GROUP_MAX_SIZE_REACHED)
    assert set(classic(driven.group).members) == {members[0].member_id, members[1].member_id}
    assert first.parked, "the join is not completed before the next request or timer"
    assert second.parked
    driven.rejoin(members[1])
    assert first.error is Error.NONE
    assert driven.heartbeat(members[2]).error is Error.UNKNOWN_MEMBER_ID


def test_a_waiting_member_of_a_full_group_may_join_again_a_refused_one_may_not() -> None:
    driven = Driven(group_max_size=10)
    ids = [driven.join(client=f"c{i}").body.member_id for i in range(11)]
    first_round = [driven.join(member_id) for member_id in ids]
    second_round = [driven.join(member_id) for member_id in ids]
    for _ in range(2):
        driven.sleep(DELAY_MS)
    assert split(second_round) == (10, 1)
    assert [answer.parked for answer in first_round] == [True] * 10 + [False]
    assert set(classic(driven.group).members) == set(ids[:10])


def test_the_last_members_to_rejoin_a_group_over_its_size_lose_their_places() -> None:
    driven = Driven()
    members = driven.stable_group(5)
    driven.config = Driven(group_max_size=3).config
    driven.restart()
    driven.step([])
    assert driven.state() is State.STABLE, "a smaller size counts from the next rebalance on"
    answers = [driven.rejoin(member) for member in members]
    driven.sleep(REBALANCE_MS)
    assert split(answers) == (3, 2)
    assert set(classic(driven.group).members) == {member.member_id for member in members[:3]}
    assert driven.state() is State.COMPLETING_REBALANCE


def test_a_stable_full_group_accepts_its_own_members() -> None:
    driven = Driven(group_max_size=1)
    (member,) = driven.stable_group(1)
    assert driven.join().body == refused(Error.GROUP_MAX_SIZE_REACHED)
    assert driven.rejoin(member).error is Error.NONE


def test_an_empty_group_hands_out_ids_beyond_its_size() -> None:
    driven = Driven(group_max_size=1)
    assert {driven.join().error for _ in range(3)} == {Error.MEMBER_ID_REQUIRED}


def test_the_older_of_two_parked_joins_of_a_member_gets_no_answer(driven: Driven) -> None:
    older = driven.join_new()
    (member_id,) = classic(driven.group).members
    newer = driven.join(member_id)
    assert driven.sleep(DELAY_MS) == [newer]
    driven.sleep_with_heartbeats(2 * NEW_MEMBER_MS, joined(newer))
    assert older.parked


def test_a_joined_member_has_the_id_of_its_answer(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    assert driven.heartbeat(Joined(member.member_id, 1)).error is Error.NONE
