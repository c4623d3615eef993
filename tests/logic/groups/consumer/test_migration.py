"""Groups that change their type while they have members, and classic members in a consumer group."""

from collections.abc import Mapping

import pytest

from coordinator_logic.config import MigrationPolicy
from coordinator_logic.embedded_protocols import (
    Assignment,
    Subscription,
    TopicPartition,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from coordinator_logic.errors import Error
from coordinator_logic.states import State
from tests.logic.driver import SESSION_MS, Joined, joined, listing
from tests.logic.groups.consumer.driver import Consumer, DrivenConsumers, topic_id
from tests.support.parts import classic, consumer_part

T = topic_id("t")
TOPICS = {"t": 4}


class Classic:
    """A cooperative consumer of the classic protocol in a group of any type."""

    def __init__(self, group: DrivenConsumers, member_id: str, instance: str | None = None) -> None:
        self.group, self.member_id, self.instance = group, member_id, instance
        self.generation = -1
        self.owned: set[int] = set()

    def join(self) -> "Classic":
        """Join, and fetch the assignment; what is revoked is given up before the next join."""
        owned = [TopicPartition("t", partition) for partition in sorted(self.owned)]
        protocols = listing("range", metadata=encode_subscription(Subscription(["t"], owned_partitions=owned)))
        answer = self.group.join(self.member_id, instance=self.instance, protocols=protocols)
        member = joined(answer)
        self.member_id, self.generation = member.member_id, member.generation_id
        synced = self.group.sync(Joined(self.member_id, self.generation, self.instance))
        if synced.error is Error.NONE:
            self.owned = {partition for _, partition in decode_assignment(synced.body.assignment).partitions}
        return self

    def beat(self) -> None:
        """Send a heartbeat, and join again if it is told to."""
        answer = self.group.heartbeat(Joined(self.member_id, self.generation, self.instance))
        if answer.error is Error.REBALANCE_IN_PROGRESS:
            self.join()
        else:
            assert answer.error is Error.NONE, answer.error


def assigned(*partitions: int) -> bytes:
    return encode_assignment(Assignment([TopicPartition("t", partition) for partition in partitions]))


def classic_group(driven: DrivenConsumers, shares: Mapping[int, tuple[int, ...]], *, static: int = 0) -> list[Classic]:
    """A Stable classic group whose members have these partitions."""
    protocols = listing("range", metadata=encode_subscription(Subscription(["t"])))
    members = driven.join_with_members(len(shares), static=static, protocols=protocols)
    leader, *followers = members
    driven.sync(leader, {member.member_id: assigned(*shares[i]) for i, member in enumerate(members)})
    for follower in followers:
        driven.sync(follower)
    assert driven.state() is State.STABLE
    consumers = []
    for i, member in enumerate(members):
        consumer = Classic(driven, member.member_id, member.group_instance_id)
        consumer.generation, consumer.owned = member.generation_id, set(shares[i])
        consumers.append(consumer)
    return consumers


def partitions_of(consumer: Classic | Consumer) -> set[int]:
    return consumer.owned if isinstance(consumer, Classic) else consumer.owned.get(T, set())


def beat_all(*consumers: Classic | Consumer, rounds: int = 8) -> None:
    for _ in range(rounds):
        for consumer in consumers:
            consumer.beat()
            held = [
                p for each in consumers for p in (each.owned if isinstance(each, Classic) else each.owned.get(T, ()))
            ]
            assert len(held) == len(set(held)), "two consumers own a partition"


@pytest.fixture
def driven() -> DrivenConsumers:
    return DrivenConsumers()


def test_a_classic_group_becomes_a_consumer_group_and_its_members_keep_what_they_have(driven: DrivenConsumers) -> None:
    first, second = classic_group(driven, {0: (0, 1), 1: (2, 3)})
    generation = driven.group.generation
    newer = Consumer(driven, "newer").join("t", topics=TOPICS)
    assert newer.owned == {}
    described = {each.member_id: each for each in driven.describe_consumers().members}
    assert described[first.member_id].member_type == 0
    assert [each.partitions for each in described[first.member_id].assignment.topic_partitions] == [[0, 1]]
    assert driven.consumer.epoch == generation + 1
    beat_all(first, second, newer)
    assert driven.state() is State.STABLE
    assert sorted([len(first.owned), len(second.owned), len(newer.owned[T])]) == [1, 1, 2]


def test_a_classic_consumer_joins_a_consumer_group(driven: DrivenConsumers) -> None:
    newer = Consumer(driven, "newer").join("t", topics=TOPICS)
    required = driven.join(protocols=listing("range", metadata=encode_subscription(Subscription(["t"]))))
    assert required.error is Error.MEMBER_ID_REQUIRED
    older = Classic(driven, required.body.member_id).join()
    beat_all(newer, older)
    assert (len(newer.owned[T]), len(older.owned)) == (2, 2)


def test_the_group_is_classic_again_when_the_last_newer_member_leaves(driven: DrivenConsumers) -> None:
    first, second = classic_group(driven, {0: (0, 1), 1: (2, 3)})
    newer = Consumer(driven, "newer").join("t", topics=TOPICS)
    beat_all(first, second, newer)
    epoch = driven.consumer.epoch
    newer.leave()
    assert consumer_part(driven.group) is None
    assert (driven.state(), driven.group.generation) == (State.PREPARING_REBALANCE, epoch)
    assert list(classic(driven.group).members) == [first.member_id, second.member_id]
    assert driven.heartbeat(Joined(first.member_id, epoch)).error is Error.REBALANCE_IN_PROGRESS
    again = Consumer(driven, "newer").join("t", topics=TOPICS)
    assert again.epoch == epoch + 1


def test_a_session_that_expires_downgrades_too(driven: DrivenConsumers) -> None:
    (first,) = classic_group(driven, {0: (0, 1, 2, 3)})
    newer = Consumer(driven, "newer").join("t", topics=TOPICS)
    beat_all(first, newer)
    for _ in range(10):
        driven.sleep(SESSION_MS - 500)
        if consumer_part(driven.group) is None:
            break
        first.beat()
    assert consumer_part(driven.group) is None
    assert driven.state() is State.PREPARING_REBALANCE


def test_a_classic_instance_replaces_the_last_newer_one_without_a_rebalance(driven: DrivenConsumers) -> None:
    first, second = classic_group(driven, {0: (0, 1), 1: (2, 3)}, static=2)
    first_newer = Consumer(driven, "newer", instance=first.instance).join("t", topics=TOPICS)
    beat_all(first_newer, second)
    back = Classic(driven, "", instance=first.instance).join()
    assert consumer_part(driven.group) is None
    assert driven.state() is State.STABLE
    assert back.owned == first_newer.owned[T]
    beat_all(back, second)


@pytest.mark.parametrize(
    ("policy", "upgrades", "downgrades"),
    [
        (MigrationPolicy.BIDIRECTIONAL, True, True),
        (MigrationPolicy.UPGRADE, True, False),
        (MigrationPolicy.DOWNGRADE, False, True),
        (MigrationPolicy.DISABLED, False, False),
    ],
)
def test_the_policy_decides_which_way_a_group_may_go(policy: MigrationPolicy, upgrades: bool, downgrades: bool) -> None:
    driven = DrivenConsumers(group_consumer_migration_policy=policy)
    classic_group(driven, {0: (0, 1, 2, 3)})
    answer = driven.enter("newer", "t", topics=TOPICS)
    assert answer.error is (Error.NONE if upgrades else Error.GROUP_ID_NOT_FOUND)

    other = DrivenConsumers(group_consumer_migration_policy=policy)
    newer = Consumer(other, "newer").join("t", topics=TOPICS)
    protocols = listing("range", metadata=encode_subscription(Subscription(["t"])))
    refused = Error.INCONSISTENT_GROUP_PROTOCOL if policy is MigrationPolicy.DISABLED else Error.NONE
    assert other.join("older", protocols=protocols).error is refused
    newer.leave()
    if refused is Error.NONE:
        assert (consumer_part(other.group) is None) == downgrades


def test_a_classic_member_that_does_not_join_again_in_time_is_fenced(driven: DrivenConsumers) -> None:
    (first,) = classic_group(driven, {0: (0, 1, 2, 3)})
    newer = Consumer(driven, "newer").join("t", topics=TOPICS)
    for _ in range(4):
        assert driven.heartbeat(Joined(first.member_id, first.generation)).error is Error.REBALANCE_IN_PROGRESS
        driven.sleep(2_500)
        newer.beat()
    assert list(driven.consumer.members) == ["newer"]


@pytest.mark.parametrize("protocol_type", ["connect"])
def test_a_group_of_another_protocol_type_cannot_become_a_consumer_group(
    driven: DrivenConsumers, protocol_type: str
) -> None:
    driven.stable_group(protocol_type=protocol_type)
    assert driven.enter("newer", "t", topics=TOPICS).error is Error.GROUP_ID_NOT_FOUND
    assert consumer_part(driven.group) is None


def test_a_classic_request_of_a_newer_member_is_refused(driven: DrivenConsumers) -> None:
    newer = Consumer(driven, "newer").join("t", topics=TOPICS)
    member = Joined("newer", newer.epoch)
    assert driven.heartbeat(member).error is Error.UNKNOWN_MEMBER_ID
    assert driven.sync(member).error is Error.UNKNOWN_MEMBER_ID
