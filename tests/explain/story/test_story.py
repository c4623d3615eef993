"""The story of a group: the cause of each rebalance and its evidence, how long it took, and what moved."""

import msgspec
import pytest

from coordinator_logic.embedded_protocols import (
    Assignment,
    Subscription,
    TopicPartition,
    encode_assignment,
    encode_subscription,
)
from coordinator_logic.messages import JoinGroupRequest, LeaveGroupRequest, LeavingMember, Protocol
from coordinator_logic.records import MemberRemoved, RequestCause
from streaming.explain.story.model import Rebalance, Story, Trigger
from streaming.explain.story.telling import StoryTeller
from streaming.explain.story.words import lines_of
from tests.journal.observed import observed
from tests.logic.driver import DELAY_MS, GROUP_ID, REBALANCE_MS, SESSION_MS, Driven, Joined, joined, listing, reading


def told(driven: Driven) -> Story:
    """The story of the journal until now."""
    return observed(StoryTeller(driven.group_id), driven.journal).story()


def last(driven: Driven) -> Rebalance:
    """The newest rebalance."""
    return told(driven).rebalances[-1]


def triggers(driven: Driven) -> list[tuple[Trigger, bool]]:
    """The possible causes of the newest rebalance, each with its certainty."""
    return [(cause.trigger, cause.is_certain) for cause in last(driven).causes]


def owning(topic: str, *partitions: int) -> list[Protocol]:
    """The protocols of a cooperative consumer that owns these partitions."""
    owned = [TopicPartition(topic, partition) for partition in partitions]
    return listing("range", metadata=encode_subscription(Subscription([topic], owned_partitions=owned)))


def assigning(*partitions: int) -> bytes:
    """A consumer's assignment."""
    return encode_assignment(Assignment([TopicPartition("orders", partition) for partition in partitions]))


def leaving(member: Joined, reason: str | None = None, group_id: str = GROUP_ID) -> LeaveGroupRequest:
    """The request with which a member leaves."""
    return LeaveGroupRequest(group_id, members=[LeavingMember(member.member_id, reason=reason)])


def assigned(driven: Driven, members: list[Joined], partitions: dict[int, tuple[int, ...]]) -> list[Joined]:
    """Let members sync; ``partitions`` of each by its place in the list."""
    assignments = {member.member_id: assigning(*partitions[place]) for place, member in enumerate(members)}
    for member in sorted(members, key=lambda one: one.leads):
        driven.sync(member, assignments if member.leads else None)
    return members


def _with_newcomer(driven: Driven, first: Joined) -> tuple[Joined, Joined]:
    """Let the client ``flapping`` join the only member; returns both."""
    newcomer = driven.join_new("flapping")
    first = joined(driven.rejoin(first))
    members = (first, joined(newcomer))
    driven.sync_all(members)
    return members


def test_a_member_that_joins_is_the_cause_and_its_entry_the_evidence() -> None:
    driven = Driven()
    driven.stable_group(1)
    newcomer = driven.join_new("newcomer").request.body
    assert isinstance(newcomer, JoinGroupRequest)
    cause = last(driven).cause
    assert (cause.trigger, cause.is_certain, cause.member) == (
        Trigger.MEMBER_JOINED,
        True,
        newcomer.member_id,
    )
    assert [one.record for one in cause.evidence] == ["MemberAdded", "StateChanged"]
    entries = {(one.incarnation, one.sequence) for one in driven.journal}
    assert {(one.incarnation, one.sequence) for one in cause.evidence} <= entries


def test_phases_follow_the_initial_delay_and_the_assignment() -> None:
    driven = Driven()
    first, second = driven.join_with_members(2)
    driven.sleep(700)
    driven.sync_all([first, second])
    rebalance = last(driven)
    assert rebalance.was_empty
    assert rebalance.joined is not None
    assert rebalance.ended is not None
    assert rebalance.joined - rebalance.began >= DELAY_MS
    assert rebalance.ended - rebalance.joined == 700
    assert [one.name.split(" at ")[0] for one in rebalance.came] == ["client-0", "client-1"]


def test_a_leave_without_a_reason_may_be_a_poll_interval_that_has_passed() -> None:
    driven = Driven()
    _, second = driven.stable_group(2)
    driven.send("LeaveGroup", leaving(second), version=5, client="client-1")
    assert triggers(driven) == [(Trigger.MEMBER_LEFT, False), (Trigger.POLL_TIMEOUT, False)]


@pytest.mark.parametrize(
    ("reason", "trigger"),
    [
        ("consumer poll timeout has expired.", Trigger.POLL_TIMEOUT),
        ("the consumer is being closed", Trigger.MEMBER_LEFT),
    ],
)
def test_the_reason_of_the_client_makes_the_cause_of_a_leave_certain(reason: str, trigger: Trigger) -> None:
    driven = Driven()
    _, second = driven.stable_group(2)
    driven.send("LeaveGroup", leaving(second, reason), version=5, client="client-1")
    assert triggers(driven) == [(trigger, True)]
    assert reason in last(driven).cause.text


def test_a_member_that_another_client_removes_is_told_from_one_that_leaves() -> None:
    driven = Driven()
    _, second = driven.stable_group(2)
    driven.send("LeaveGroup", leaving(second), version=5, client="operator")
    assert triggers(driven) == [(Trigger.REMOVED_BY_ANOTHER, True)]
    assert "operator" in last(driven).cause.text


def test_an_expelled_member_is_named_with_its_silence() -> None:
    driven = Driven()
    first, second = driven.stable_group(2)
    driven.sleep_with_heartbeats(SESSION_MS + 1, first)
    cause = last(driven).cause
    assert (cause.trigger, cause.is_certain, cause.member) == (Trigger.SESSION_EXPIRED, True, second.member_id)
    assert f"{SESSION_MS / 1000:g} s" in cause.text
    assert [one.member for one in last(driven).went] == [second.member_id]


def test_an_expiry_soon_after_a_start_of_the_coordinator_has_two_possible_causes() -> None:
    driven = Driven()
    first, _ = driven.stable_group(2)
    driven.config = msgspec.structs.replace(driven.config, job_epoch=driven.config.job_epoch + 1)
    driven.commit(first, {("orders", 0): 1})
    driven.sleep_with_heartbeats(SESSION_MS + 1, first)
    assert triggers(driven) == [(Trigger.SESSION_EXPIRED, False), (Trigger.COORDINATOR_AWAY, False)]


def test_a_member_that_does_not_sync_is_the_cause() -> None:
    driven = Driven()
    first, second = driven.join_with_members(2)
    driven.sync(first, {first.member_id: b"", second.member_id: b""})
    driven.sleep_with_heartbeats(REBALANCE_MS + 1, first, second)
    assert (Trigger.DID_NOT_SYNC, True) in [
        (cause.trigger, cause.is_certain) for one in told(driven).rebalances for cause in one.causes
    ]


def test_a_changed_subscription_is_told_by_its_topics() -> None:
    driven = Driven()
    _, second = driven.stable_group(2, protocols=reading("orders"))
    driven.rejoin(second, protocols=reading("orders", "returns"))
    assert triggers(driven) == [(Trigger.SUBSCRIPTION_CHANGED, True)]
    assert last(driven).cause.text == "+returns"


def test_partitions_that_a_cooperative_member_gives_up_are_told_from_other_metadata() -> None:
    driven = Driven()
    _, second = driven.stable_group(2, protocols=owning("orders", 0, 1))
    driven.rejoin(second, protocols=owning("orders", 0))
    assert triggers(driven) == [(Trigger.PARTITIONS_GIVEN_UP, True)]


def test_a_leader_that_rejoins_unchanged_may_have_seen_a_topic_change() -> None:
    driven = Driven()
    first, _ = driven.stable_group(2)
    driven.rejoin(first)
    assert triggers(driven) == [(Trigger.LEADER_REJOINED, False), (Trigger.TOPIC_CHANGED, False)]


def test_a_static_member_that_returns_keeps_the_generation_and_is_no_rebalance() -> None:
    driven = Driven()
    driven.stable_group(2, static=1)
    before = len(told(driven).rebalances)
    driven.join(instance="instance-0", client="client-0")
    assert len(told(driven).rebalances) == before


def test_needless_moves_are_counted_against_the_least_possible() -> None:
    driven = Driven()
    members = assigned(driven, driven.join_with_members(2), {0: (0, 1), 1: (2, 3)})
    leader = driven.rejoin(members[0])
    follower = driven.rejoin(members[1])
    assigned(driven, [joined(leader), joined(follower)], {0: (2, 3), 1: (0, 1)})
    moves = last(driven).moves
    assert moves is not None
    assert (moves.partitions, moves.moved, moves.least, moves.needless) == (4, 4, 0, 4)


def test_a_summary_names_the_client_that_causes_most_rebalances_and_the_flapping() -> None:
    driven = Driven()
    (first,) = driven.stable_group(1)
    for _ in range(3):
        first, newcomer = _with_newcomer(driven, first)
        driven.send("LeaveGroup", leaving(newcomer, "restart"), version=5, client="flapping")
        first = joined(driven.rejoin(first))
        driven.sync_all([first])
    summary = told(driven).summary
    assert summary.rebalances == 7
    assert summary.busiest is not None
    assert summary.busiest.startswith("flapping at ")
    assert (summary.busiest_count, round(summary.flapping, 2)) == (6, round(5 / 7, 2))


def test_a_journal_without_its_beginning_is_said_to_be_one() -> None:
    driven = Driven()
    driven.stable_group(1)
    teller = observed(StoryTeller(driven.group_id), driven.journal[3:])
    assert not teller.story().is_complete
    assert told(driven).is_complete


def test_entries_that_repeat_change_nothing() -> None:
    driven = Driven()
    first, _ = driven.stable_group(2)
    driven.sleep_with_heartbeats(SESSION_MS + 1, first)
    teller = observed(StoryTeller(driven.group_id), [*driven.journal, *driven.journal])
    assert teller.story() == told(driven)


def test_the_words_name_each_cause_and_the_present_state() -> None:
    driven = Driven()
    first, _ = driven.stable_group(2)
    driven.sleep_with_heartbeats(SESSION_MS + 1, first)
    text = "\n".join(lines_of(told(driven)))
    for rebalance in told(driven).rebalances:
        assert rebalance.cause.trigger in text
    assert "Now: PreparingRebalance" in text


def test_every_rebalance_has_the_request_or_timer_of_its_evidence() -> None:
    driven = Driven()
    first, _ = driven.stable_group(2)
    driven.sleep_with_heartbeats(SESSION_MS + 1, first)
    by_place = {(one.incarnation, one.sequence): one for one in driven.journal}
    for rebalance in told(driven).rebalances:
        causes = {by_place[one.incarnation, one.sequence].cause for one in rebalance.cause.evidence}
        assert len(causes) == 1
    removal = next(one for one in driven.journal if isinstance(one.record, MemberRemoved))
    assert not isinstance(removal.cause, RequestCause)


def test_a_forced_reset_is_the_cause_with_the_operators_reason_and_the_new_offsets_as_evidence() -> None:
    driven = Driven()
    driven.stable_group(2)
    driven.reset_offsets({("orders", 0): 5}, force=True, reason="replay the night")
    (cause,) = last(driven).causes
    assert (cause.trigger, cause.is_certain, cause.member) == (Trigger.OFFSETS_RESET, True, None)
    assert cause.text == "client at /127.0.0.1: offsets reset: replay the night"
    assert [one.record for one in cause.evidence] == ["OffsetsCommitted", "GenerationStarted", "StateChanged"]
