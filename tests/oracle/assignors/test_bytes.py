"""Subscriptions, assignments and user data: the same bytes as Kafka's own classes write, and read as they read them."""

from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_logic.consumer_protocol import (
    Assignment,
    ConsumerProtocolError,
    Subscription,
    TopicPartition,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    subscribed_topics,
)
from coordinator_logic.consumer_protocol.assignors import assignor_by_name
from coordinator_logic.consumer_protocol.assignors.sticky.member_data import decode_owned_partitions
from coordinator_logic.consumer_protocol.topic_partition import java_order

from .cases import on_random_examples
from .kafka_classes import JavaException, KafkaClasses

T = TypeVar("T")

NEWEST = 3
REFUSED = "refused"

int32 = st.integers(-(2**31), 2**31 - 1)
# A lone surrogate has no UTF-8 form: Java writes a question mark for it, here it is an error.
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
names = st.sampled_from(["t", "u", "\uff41", "\U0001f600"]) | text
partitions = st.lists(st.builds(TopicPartition, names, st.integers(0, 9) | int32), max_size=6)
opaque = st.none() | st.binary(max_size=8)
subscriptions = st.builds(
    Subscription, st.lists(names, max_size=4), opaque, partitions, st.integers(-2, 9) | int32, st.none() | text
)
assignments = st.builds(Assignment, partitions, opaque)
versions = st.sampled_from([0, 1, 2, NEWEST, NEWEST + 1, 2**15 - 1])


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    """Bytes of a message, or of another one, with some of them cut out or replaced."""
    data = bytearray(draw(whole | st.binary(max_size=20)))
    for _ in range(draw(st.integers(1, 3))):
        begin = draw(st.integers(0, len(data)))
        end = draw(st.sampled_from([begin, begin + 1, begin + 4, len(data)]))
        data[begin:end] = draw(st.binary(max_size=3) | st.sampled_from([b"\0\0\0\0", b"\xff\xff", b"\xff\xff\xff\xff"]))
    return bytes(data)


def outcome(act: Callable[..., T], *arguments: object) -> T | str:
    """What comes back, or that the bytes were refused."""
    try:
        return act(*arguments)
    except (ConsumerProtocolError, JavaException):
        return REFUSED


def as_far_as(version: int, subscription: Subscription) -> Subscription:
    """What a reader gets of a subscription that was written in ``version``."""
    return Subscription(
        sorted(subscription.topics, key=java_order),
        subscription.user_data,
        sorted(subscription.owned_partitions, key=lambda tp: (java_order(tp.topic), tp.partition))
        if version >= 1
        else [],
        max(-1, subscription.generation_id) if version >= 2 else -1,
        subscription.rack_id or None if version >= 3 else None,
    )


@on_random_examples()
@given(subscription=subscriptions, version=versions)
def test_a_subscription_is_written_and_read_alike(
    kafka: KafkaClasses, subscription: Subscription, version: int
) -> None:
    theirs = kafka.encode_subscription(subscription, version)
    assert encode_subscription(subscription, version) == theirs
    assert decode_subscription(theirs) == as_far_as(version, subscription)


@on_random_examples()
@given(assignment=assignments, version=versions)
def test_an_assignment_is_written_and_read_alike(kafka: KafkaClasses, assignment: Assignment, version: int) -> None:
    theirs = kafka.encode_assignment(assignment, version)
    assert encode_assignment(assignment, version) == theirs
    read = decode_assignment(theirs)
    assert read.user_data == assignment.user_data
    assert sorted(read.partitions) == sorted(assignment.partitions)


@on_random_examples()
@given(data=damaged(st.builds(encode_subscription, subscriptions, versions)))
def test_a_damaged_subscription_is_refused_or_read_alike(kafka: KafkaClasses, data: bytes) -> None:
    def copied() -> bytes:
        return encode_subscription(decode_subscription(data))

    assert outcome(copied) == outcome(kafka.copied_subscription, data, NEWEST)
    assert outcome(subscribed_topics, data) == outcome(kafka.subscribed_topics, data)


@on_random_examples()
# No bytes at all are what a coordinator gives a member that its leader has forgotten; Kafka's consumers fail then.
@given(data=damaged(st.builds(encode_assignment, assignments, versions)).filter(bool))
def test_a_damaged_assignment_is_refused_or_read_alike(kafka: KafkaClasses, data: bytes) -> None:
    def copied() -> bytes:
        return encode_assignment(decode_assignment(data))

    assert outcome(copied) == outcome(kafka.copied_assignment, data, NEWEST)


@pytest.mark.parametrize("version", [-1, -(2**15)])
def test_a_negative_version_is_refused(kafka: KafkaClasses, version: int) -> None:
    for write in (encode_subscription, kafka.encode_subscription):
        assert outcome(write, Subscription(["t"]), version) == REFUSED
    for write_assignment in (encode_assignment, kafka.encode_assignment):
        assert outcome(write_assignment, Assignment(), version) == REFUSED


@on_random_examples()
@given(assignment=assignments, generation=int32)
def test_a_cooperative_consumers_user_data_are_written_alike(
    kafka: KafkaClasses, assignment: Assignment, generation: int
) -> None:
    assignor = assignor_by_name("cooperative-sticky")
    assignor.on_assignment(assignment, generation)
    assert assignor.subscription_user_data() == kafka.user_data("cooperative-sticky", assignment, generation)


@on_random_examples()
@given(assignment=assignments, generation=int32)
def test_a_sticky_consumers_user_data_are_written_and_read_alike(
    kafka: KafkaClasses, assignment: Assignment, generation: int
) -> None:
    assignor = assignor_by_name("sticky")
    assignor.on_assignment(assignment, generation)
    ours, theirs = assignor.subscription_user_data(), kafka.user_data("sticky", assignment, generation)
    assert ours is not None
    assert theirs is not None
    # Kafka's topics are in the order of a hash map, so the bytes need not be the same.
    assert len(ours) == len(theirs)
    for user_data in (ours, theirs):
        read = decode_owned_partitions(user_data)
        assert (sorted(read.partitions), read.generation) == (sorted(assignment.partitions), generation)
