"""The state machine of a member of a consumer group, against the coordinator's logic in virtual time."""

import pytest

from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    ConsumerGroupHeartbeatAssignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicIdPartitions,
)
from streaming.client.errors import CoordinatorError, FencedInstanceId, RequestTimedOut
from streaming.client.membership.consumer_groups.membership import ConsumerMembership, MembershipPhase
from streaming.client.membership.consumer_groups.types import TopicSubscription
from streaming.client.membership.types import MemberConfig
from tests.client.membership.consumer_groups.simulation import (
    MAX_POLL_SECONDS,
    TOPIC,
    SimulatedGroup,
    SimulatedMember,
)
from tests.logic.groups.consumer.driver import description, topic_id


@pytest.fixture
def group() -> SimulatedGroup:
    return SimulatedGroup(6)


def listed(request: ConsumerGroupHeartbeatRequest | None) -> list[int] | None:
    """The owned partitions in a heartbeat; None if it does not list them."""
    assert request is not None
    if request.topic_partitions is None:
        return None
    return sorted(partition for topic in request.topic_partitions for partition in topic.partitions)


def beat_twice_after_growth(group: SimulatedGroup, member: SimulatedMember) -> None:
    """Let a member report new partitions, and send another heartbeat before the coordinator has read that one."""
    group.grow(8)
    member.poll()
    member.beat()
    group.sleep(5)
    member.beat()


# ---- heartbeats ----------------------------------------------------------------------------------------------------


def test_the_first_heartbeat_has_all_fields_and_waits_for_its_answer(group: SimulatedGroup) -> None:
    member = group.new("a")
    member.poll()
    request = member.beat()
    assert request == ConsumerGroupHeartbeatRequest(
        group.driven.group_id,
        "a",
        0,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=[TOPIC],
        subscribed_topic_regex="",
        topic_partitions=[],
        topics=[description(TOPIC, 6)],
    )
    group.sleep(20)
    member.poll()
    assert member.beat() is None
    group.read()
    member.receive()
    member.poll()
    assert member.calls == [("assigned", [0, 1, 2, 3, 4, 5])]
    assert member.state.generation.generation_id == 2


def test_a_heartbeat_in_a_stable_group_has_no_optional_field(group: SimulatedGroup) -> None:
    member = group.new("a")
    group.run()
    assert member.beat() is None, "the interval has not passed"
    group.sleep(5)
    assert member.beat() == ConsumerGroupHeartbeatRequest(group.driven.group_id, "a", 2)
    group.sleep(5)
    assert member.beat() is not None, "it is sent although the last one is not answered"


def test_the_coordinator_decides_on_the_interval() -> None:
    group = SimulatedGroup(6, group_consumer_heartbeat_interval_ms=700)
    member = group.new("a")
    group.run()
    group.sleep(0.69)
    assert member.beat() is None
    group.sleep(0.02)
    assert member.beat() is not None


def test_a_changed_subscription_is_reported_at_once(group: SimulatedGroup) -> None:
    member = group.new("a")
    group.run()
    member.subscription = TopicSubscription.of([TOPIC, "more"], topics=[description(TOPIC, 6), description("more", 1)])
    member.poll()
    request = member.beat()
    assert request is not None
    assert (request.subscribed_topic_names, request.topics) == (["more", TOPIC], [description("more", 1)])
    group.run()
    assert len(member.owned) == 7
    group.run(seconds=5)
    assert member.calls[-1] == ("assigned", [0])


def test_a_pattern_replaces_names(group: SimulatedGroup) -> None:
    member = group.new("a")
    group.run()
    member.subscription = TopicSubscription.of(pattern="or.*", topics=[description(TOPIC, 6)])
    member.poll()
    request = member.beat()
    assert request is not None
    assert (request.subscribed_topic_names, request.subscribed_topic_regex, request.topics) == ([], "or.*", [])
    group.run(seconds=15)
    assert member.owned == [0, 1, 2, 3, 4, 5]


def test_a_heartbeat_without_an_answer_is_followed_by_one_with_all_fields(group: SimulatedGroup) -> None:
    member = group.new("a")
    group.run()
    group.sleep(5)
    member.beat()
    member.time_out()
    assert member.beat() is None, "it backs off"
    group.sleep(0.1)
    request = member.beat()
    assert listed(request) == [0, 1, 2, 3, 4, 5]
    assert request is not None
    assert request.topics == [description(TOPIC, 6)]


# ---- reconciliation ------------------------------------------------------------------------------------------------


def test_a_member_lists_what_it_owns_once_it_has_revoked(group: SimulatedGroup) -> None:
    first, second = group.new("a"), group.new("b")
    first.exchange()
    second.exchange()
    group.sleep(5)
    assert listed(first.beat()) is None
    group.read()
    first.receive()
    assert first.beat() is None, "it confirms nothing before its application has given the partitions up"
    first.poll()
    assert [call for call, _ in first.calls] == ["assigned", "revoked", "assigned"]
    assert listed(first.beat()) == first.owned
    group.run(seconds=5)
    assert sorted(first.owned + second.owned) == [0, 1, 2, 3, 4, 5]
    assert group.is_settled()


def test_partitions_that_are_only_added_need_no_confirmation(group: SimulatedGroup) -> None:
    member = group.new("a")
    group.run()
    group.grow(8)
    member.exchange()
    assert member.owned == list(range(8))
    assert member.beat() is None


def test_a_list_of_owned_partitions_has_those_that_the_member_may_still_get(group: SimulatedGroup) -> None:
    member = group.new("a")
    group.run()
    beat_twice_after_growth(group, member)
    group.read()
    member.receive()
    member.time_out()
    assert member.owned == list(range(6))
    group.sleep(1)
    assert listed(member.beat()) == list(range(8))


def test_answers_to_heartbeats_before_a_list_of_owned_partitions_have_no_effect() -> None:
    member = ConsumerMembership("a", MemberConfig(group_id="group"), MAX_POLL_SECONDS)
    member.subscribe(TopicSubscription.of([TOPIC]), 0.0)
    joined = member.next_heartbeat(0.0)
    assert joined is not None
    member.apply_answer(joined[0], answer(2, [0]), 0.0)
    early, timed_out = member.next_heartbeat(5.0), member.next_heartbeat(10.0)
    assert early is not None
    assert timed_out is not None
    member.apply_error(timed_out[0], RequestTimedOut("simulated"), 10.0)
    full = member.next_heartbeat(10.2)
    assert full is not None
    assert listed(full[1]) == [0]
    assert not member.apply_answer(early[0], answer(3, [0, 1]), 10.3)
    assert member.generation.generation_id == 2
    assert member.apply_answer(full[0], answer(4, [2]), 10.4)
    assert member.generation.generation_id == 4


def answer(epoch: int, partitions: list[int]) -> ConsumerGroupHeartbeatResponse:
    assigned = ConsumerGroupHeartbeatAssignment([TopicIdPartitions(topic_id(TOPIC), partitions)])
    return ConsumerGroupHeartbeatResponse(member_id="a", member_epoch=epoch, assignment=assigned)


def test_a_topic_that_is_created_again_is_given_up_and_taken(group: SimulatedGroup) -> None:
    member = group.new("a")
    group.run()
    again = description(TOPIC, 6, of_id=topic_id("again"))
    member.subscription = TopicSubscription.of([TOPIC], topics=[again])
    group.run(seconds=5)
    everything = [0, 1, 2, 3, 4, 5]
    assert [call for call in member.calls if call[1]] == [
        ("assigned", everything), ("revoked", everything), ("assigned", everything),
    ]  # fmt: skip


# ---- fencing -------------------------------------------------------------------------------------------------------


def test_a_removed_member_abandons_its_partitions_and_joins_again(group: SimulatedGroup) -> None:
    member = group.new("a")
    group.run()
    group.sleep(46)
    member.state.record_poll(group.now)
    member.beat()
    group.read()
    assert member.receive() is Error.UNKNOWN_MEMBER_ID
    assert member.state.phase is MembershipPhase.LOST
    assert not member.state.generation.is_member
    assert member.beat() is None, "it is silent until its application has given its partitions up"
    member.poll()
    assert member.calls[-1] == ("lost", [0, 1, 2, 3, 4, 5])
    request = member.beat()
    assert request is not None
    assert (request.member_epoch, request.topic_partitions) == (0, [])
    group.run()
    assert member.owned == [0, 1, 2, 3, 4, 5]


def test_a_member_with_an_epoch_that_the_group_does_not_know_joins_again(group: SimulatedGroup) -> None:
    member = group.new("a")
    group.run()
    group.driven.snapshot = None  # the coordinator's checkpoint was older
    other = group.new("b")
    other.poll()
    other.beat()
    group.read()
    group.sleep(5)
    member.beat()
    group.read()
    assert member.receive() is Error.UNKNOWN_MEMBER_ID
    group.run(seconds=20)
    assert group.is_settled()


def test_a_refusal_of_an_older_epoch_has_no_effect(group: SimulatedGroup) -> None:
    member = group.new("a")
    group.run()
    beat_twice_after_growth(group, member)
    group.read()
    group.read()
    assert member.receive() is Error.NONE
    assert member.receive() is Error.FENCED_MEMBER_EPOCH
    member.poll()
    assert member.owned == list(range(8))
    assert member.state.generation.generation_id == 3


def test_a_member_that_is_fenced_with_its_present_epoch_joins_again(group: SimulatedGroup) -> None:
    member = group.new("a")
    group.run()
    group.sleep(5)
    member.beat()
    member.answers.append((member.unanswered[0], ConsumerGroupHeartbeatResponse(Error.FENCED_MEMBER_EPOCH)))
    assert member.receive() is Error.FENCED_MEMBER_EPOCH
    group.log.clear()
    group.run()
    assert [call for call, _ in member.calls] == ["assigned", "lost", "assigned"]
    assert group.is_settled()


def test_a_static_member_whose_instance_id_is_in_use_is_refused_and_retries(group: SimulatedGroup) -> None:
    owner = group.new("a", "i-1")
    group.run()
    second = group.new("b", "i-1")
    second.poll()
    second.beat()
    group.read()
    assert second.receive() is Error.UNRELEASED_INSTANCE_ID
    second.poll()
    assert [failure.error for failure in second.failures] == [Error.UNRELEASED_INSTANCE_ID]
    owner.leave()
    group.members.remove(owner)
    group.run()
    assert second.owned == [0, 1, 2, 3, 4, 5]


def test_a_fenced_instance_fails_for_good(group: SimulatedGroup) -> None:
    member = group.new("a", "i-1")
    group.run()
    member.state.fence(FencedInstanceId("simulated"))
    for _ in range(2):
        member.poll()
        assert member.beat() is None
    assert [failure.error for failure in member.failures] == [Error.FENCED_INSTANCE_ID] * 2
    assert member.calls[-1] == ("lost", [0, 1, 2, 3, 4, 5])


def test_a_refused_member_raises_and_joins_with_the_poll_after_that(group: SimulatedGroup) -> None:
    member = group.new("a")
    member.subscription = TopicSubscription.of(pattern="(")
    member.poll()
    member.beat()
    group.read()
    assert member.receive() is Error.INVALID_REGULAR_EXPRESSION
    with pytest.raises(CoordinatorError):
        member.state.finish_loss()
    member.subscription = None
    group.run()
    assert member.owned == [0, 1, 2, 3, 4, 5]


# ---- leaving -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("instance_id", "epoch"), [(None, -1), ("i-1", -2)])
def test_a_member_that_is_not_polled_leaves_and_joins_again_with_the_next_poll(
    group: SimulatedGroup, instance_id: str | None, epoch: int
) -> None:
    member = group.new("a", instance_id)
    group.run()
    wake_at = member.state.wake_at()
    assert wake_at is not None
    assert wake_at <= MAX_POLL_SECONDS
    group.sleep(MAX_POLL_SECONDS)
    leaving = member.beat()
    assert leaving == ConsumerGroupHeartbeatRequest(group.driven.group_id, "a", epoch, instance_id)
    assert member.state.wake_at() is None
    group.run()
    assert [call for call, _ in member.calls] == ["assigned", "lost", "assigned"]


@pytest.mark.parametrize(("instance_id", "epoch"), [(None, -1), ("i-1", -2)])
def test_leaving_takes_effect_while_answers_are_outstanding(
    group: SimulatedGroup, instance_id: str | None, epoch: int
) -> None:
    member = group.new("a", instance_id)
    member.poll()
    member.beat()
    member.leave()
    assert group.log[-1].request.member_epoch == epoch
    group.read()
    group.read()
    member.receive()
    assert not member.state.generation.is_member
    assert member.owned == []


def test_a_member_that_has_not_joined_leaves_silently(group: SimulatedGroup) -> None:
    member = group.new("a")
    member.leave()
    assert not group.log


def test_a_member_that_is_lost_while_its_application_revokes_takes_nothing_more(group: SimulatedGroup) -> None:
    member = group.new("a")
    member.poll()
    member.beat()
    group.read()
    member.receive()
    change = member.state.next_change()
    assert change is not None
    assert member.state.lose(member.state.generation)
    assert member.state.confirm_assigned(change.added) == frozenset()
    assert member.owned == []
