"""Each kind of refused request, with what it lost to and the entries that show it."""

from dataclasses import replace

import msgspec

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.embedded_protocols import Assignment, TopicPartition, encode_assignment
from coordinator_logic.groups.classic.records import GenerationStarted
from coordinator_logic.records import MemberRemoved, RequestCause, StaticMemberReplaced
from streaming.explain.refusals.judging import Judge
from streaming.explain.refusals.told import REPEATED_WITHIN_MS, refused_of
from streaming.explain.story.model import RefusedRequest
from streaming.explain.story.words import clock
from tests.explain.refusals.judged import judge_of, refused
from tests.journal.observed import observed
from tests.logic.driver import SESSION_MS, Driven, Joined, joined, listing
from tests.logic.groups.consumer.driver import SESSION_MS as CONSUMER_SESSION_MS
from tests.logic.groups.consumer.driver import Consumer, DrivenConsumers


def assigning(*partitions: int) -> bytes:
    """A consumer's assignment of partitions of ``orders``."""
    return encode_assignment(Assignment([TopicPartition("orders", partition) for partition in partitions]))


def sync_all(driven: Driven, members: list[Joined]) -> None:
    """Let members sync; each gets the partition of its place in the list."""
    assignments = {member.member_id: assigning(place) for place, member in enumerate(members)}
    for member in members:
        driven.sync(member, assignments if member.leads else None)


def only(driven: Driven) -> RefusedRequest:
    """The one refusal."""
    (refusal,) = refused(driven).refusals
    return refusal


def took_over(driven: Driven) -> tuple[Joined, Joined]:
    """A static member whose instance id another process takes; the two members."""
    answer = driven.join(instance="i", client="first")
    driven.sleep(3_000)
    old = joined(answer)
    sync_all(driven, [old])
    new = joined(driven.join(instance="i", client="second"))
    return old, new


def test_a_commit_of_an_older_generation_names_the_present_one_and_the_owner_of_the_partition() -> None:
    driven = Driven()
    (member,) = driven.join_with_members(1)
    sync_all(driven, [member])
    newcomer = driven.join_new("newcomer")
    rejoined = joined(driven.rejoin(member))
    sync_all(driven, [joined(newcomer), rejoined])
    driven.now += 100
    driven.commit(replace(rejoined, generation_id=1), {("orders", 1): 120, ("orders", 0): 7})
    refusal = only(driven)
    (began,) = [one for one in driven.journal if one.record == GenerationStarted(2, "range")]
    assert (refusal.api, refusal.error, refusal.generation) == ("OffsetCommit", "ILLEGAL_GENERATION", 1)
    assert (refusal.member, refusal.name) == (member.member_id, "client at /127.0.0.1")
    assert refusal.first == refusal.last == driven.now
    assert refusal.text.startswith(
        "a commit of generation 1 for orders-1 (offset 120), orders-0 (offset 7): "
        f"the group is in generation 2 since {clock(began.timestamp)}; orders-1 belongs to "
    )
    assert refusal.lost_to in {rejoined.member_id, joined(newcomer).member_id}
    assert [(one.incarnation, one.sequence) for one in refusal.evidence] == [(began.incarnation, began.sequence)]
    place = driven.log[-1].place
    assert (refusal.partition, refusal.offset) == (place.partition, place.offset)


def test_a_commit_of_a_fenced_member_names_the_process_that_took_its_instance_id() -> None:
    driven = Driven()
    old, new = took_over(driven)
    driven.commit(old, {("orders", 0): 120})
    refusal = only(driven)
    assert (refusal.error, refusal.instance_id, refusal.lost_to) == ("FENCED_INSTANCE_ID", "i", new.member_id)
    taker = f"second at /127.0.0.1 (member {new.member_id})"
    assert f"another process, {taker}, took its group instance id i at {clock(driven.now)}" in refusal.text
    assert f"orders-0 belongs to first at /127.0.0.1 (member {new.member_id})" in refusal.text
    assert [one.record for one in refusal.evidence] == [StaticMemberReplaced.__name__]


def test_a_static_id_that_two_processes_use_shows_each_of_them_fenced_by_the_other() -> None:
    driven = Driven()
    old, new = took_over(driven)
    driven.heartbeat(old)
    again = joined(driven.join(instance="i", client="first"))
    driven.heartbeat(new)
    told = refused(driven)
    assert [(one.error, one.lost_to) for one in told.refusals] == [
        ("FENCED_INSTANCE_ID", new.member_id),
        ("FENCED_INSTANCE_ID", again.member_id),
    ]


def test_a_join_with_the_wrong_assignor_names_the_protocols_that_the_others_share() -> None:
    driven = Driven()
    driven.stable_group(2)
    for _ in range(3):
        driven.now += 1_000
        driven.join(client="wrong", protocols=listing("roundrobin"))
    refusal = only(driven)
    assert (refusal.api, refusal.error) == ("JoinGroup", "INCONSISTENT_GROUP_PROTOCOL")
    assert refusal.text == "a join with the protocols [roundrobin]: the others have [range] in common"
    assert (refusal.count, refusal.last - refusal.first) == (3, 2_000)
    assert refused(driven).busiest == "wrong at /127.0.0.1"


def test_a_join_of_another_protocol_type_names_that_of_the_group() -> None:
    driven = Driven()
    driven.stable_group()
    driven.join(client="wrong", protocol_type="connect")
    assert only(driven).text.endswith("the group's protocol type is consumer, and not connect")


def test_an_unknown_member_is_told_when_its_session_ended() -> None:
    driven = Driven()
    first, second = driven.join_with_members(2)
    sync_all(driven, [first, second])
    driven.sleep_with_heartbeats(SESSION_MS, first)
    driven.heartbeat(second)
    driven.sync(second)
    heartbeat, sync = refused(driven).refusals
    (removed,) = [one for one in driven.journal if isinstance(one.record, MemberRemoved)]
    assert (heartbeat.api, heartbeat.error, sync.api) == ("Heartbeat", "UNKNOWN_MEMBER_ID", "SyncGroup")
    text = f"it is no longer a member: its session timed out at {clock(removed.timestamp)}"
    assert heartbeat.text == f"a heartbeat of generation 1: {text}"
    assert [one.sequence for one in heartbeat.evidence] == [removed.sequence]


def test_a_commit_without_a_member_loses_to_the_members_of_the_group() -> None:
    driven = Driven()
    driven.stable_group(2)
    driven.commit(offsets={("orders", 0): 5})
    driven.commit_in_transaction({("orders", 0): 6}, Joined("nobody", 1))
    plain, transactional = refused(driven).refusals
    assert plain.text.endswith("it names no member, and the group has 2 members")
    assert transactional.text.startswith("a commit in a transaction of generation 1 for orders-0 (offset 6)")
    assert refused(driven).commits == 2


def test_a_reset_of_a_group_with_members_is_told() -> None:
    driven = Driven()
    driven.stable_group(1)
    driven.reset_offsets({("orders", 0): 5})
    refusal = only(driven)
    assert (refusal.api, refusal.error) == ("ResetOffsets", "NON_EMPTY_GROUP")
    assert refusal.text == "a reset of orders-0 (offset 5): the group has 1 member"


def test_a_commit_to_a_deleted_group_is_told_when_it_was_deleted() -> None:
    driven = Driven()
    (member,) = driven.stable_group(1)
    driven.leave(member)
    driven.delete()
    driven.commit(Joined("other", 3))
    assert f"the group was deleted at {clock(driven.now)}" in only(driven).text


def test_the_ordinary_answers_of_a_rebalance_are_not_told() -> None:
    driven = Driven()
    (member,) = driven.stable_group(1)
    driven.join_new("newcomer")
    driven.heartbeat(member)
    driven.rejoin(member)
    assert refused(driven).refusals == []


def test_a_member_of_a_consumer_group_that_was_expelled_or_is_behind_is_told() -> None:
    driven = DrivenConsumers()
    a = Consumer(driven, "a").join("orders", topics={"orders": 2})
    driven.commit(Joined("a", a.epoch + 5), {("orders", 0): 3})
    stale = only(driven)
    assert (stale.error, stale.lost_to) == ("STALE_MEMBER_EPOCH", "a")
    assert f"the member is at epoch {a.epoch}, the group is at epoch {a.epoch} since " in stale.text
    driven.beat("a", a.epoch + 7)
    driven.sleep(CONSUMER_SESSION_MS + 1)
    driven.beat("a", a.epoch)
    _, fenced, unknown = refused(driven).refusals
    assert fenced.error == "FENCED_MEMBER_EPOCH"
    assert unknown.error == "UNKNOWN_MEMBER_ID"
    assert "it is no longer a member: its session timed out at" in unknown.text


def test_an_instance_id_of_a_consumer_group_that_is_in_use_names_its_member() -> None:
    driven = DrivenConsumers()
    Consumer(driven, "a", "i").join("orders", topics={"orders": 2})
    driven.enter("b", "orders", instance_id="i")
    refusal = only(driven)
    assert (refusal.error, refusal.lost_to, refusal.instance_id) == ("UNRELEASED_INSTANCE_ID", "a", "i")
    assert "another process, client at /127.0.0.1 (member a), has its group instance id i at" in refusal.text


def test_a_refusal_that_comes_again_much_later_is_told_again() -> None:
    driven = Driven()
    driven.stable_group(1)
    driven.restart()
    for pause in (0, REPEATED_WITHIN_MS, REPEATED_WITHIN_MS + 1):
        driven.now += pause
        driven.heartbeat(Joined("nobody", 1))
    assert [one.count for one in refused(driven).refusals] == [2, 1]
    assert refused(driven).requests == 3


def test_requests_before_the_journal_tells_who_was_a_member_are_counted_and_not_judged() -> None:
    driven = Driven()
    (member,) = driven.stable_group(1)
    driven.heartbeat(Joined("nobody", 1))
    driven.heartbeat(member)
    told = refused_of(judge_of(driven, skip=3), None)
    assert told.refusals == []
    assert any("the journal does not have the group's members" in note for note in told.notes)


def test_a_commit_that_should_have_an_entry_and_has_none_is_not_passed_over() -> None:
    driven = Driven()
    (member,) = driven.stable_group(1)
    driven.commit(member)
    driven.commit(member)
    del driven.journal[-2]
    driven.journal[-1] = msgspec.structs.replace(driven.journal[-1], sequence=driven.journal[-1].sequence - 1)
    assert any(note.startswith("Perhaps refused: 1 commit that") for note in refused(driven).notes)


def test_what_only_the_options_would_refuse_is_counted_and_not_told() -> None:
    driven = Driven()
    driven.stable_group(1)
    driven.join_new("another")
    driven.join(client="wrong", protocols=listing("roundrobin"))
    # The first joins have no entry, and the sessions of these tests are shorter than the default options allow.
    told = refused_of(judge_of(driven, config=CoordinatorConfig()), 0)
    assert [one.error for one in told.refusals] == ["INCONSISTENT_GROUP_PROTOCOL"]
    (note,) = [note for note in told.notes if note.startswith("Not shown: 1 request that")]
    assert "INVALID_SESSION_TIMEOUT" in note


def test_a_commit_that_was_handled_later_than_its_place_in_the_log_says_is_no_refusal() -> None:
    driven = Driven()
    (member,) = driven.stable_group(1)
    driven.commit(member)
    created, *others, commit = driven.log
    judge = Judge(driven.group_id, [created, commit, *others], driven.config)
    observed(judge, driven.journal)
    assert judge.finish() == []


def test_a_join_that_waits_is_no_refusal() -> None:
    driven = Driven()
    assert driven.join_new("waits").parked
    assert refused(driven).refusals == []


def test_a_request_in_another_partition_than_those_that_were_read_is_noted() -> None:
    driven = Driven()
    driven.stable_group(1)
    cause = driven.journal[-1].cause
    assert isinstance(cause, RequestCause)
    driven.journal[-1] = msgspec.structs.replace(driven.journal[-1], cause=msgspec.structs.replace(cause, partition=1))
    assert any("other partitions" in note for note in refused(driven).notes)
