"""Subscriptions, assignments and user data have the same bytes as those of Kafka's classes, which decode them alike."""

from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_logic.assignors import assignor_by_name
from coordinator_logic.assignors.sticky.claims import decode_owned_partitions
from coordinator_logic.embedded_protocols import (
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
from coordinator_logic.embedded_protocols.primitives import java_order

from .cases import on_random_examples
from .kafka_classes import JavaException, KafkaClasses

T = TypeVar("T")

NEWEST = 3
REFUSED = "refused"

int32 = st.integers(-(2**31), 2**31 - 1)
# A lone surrogate cannot be encoded in UTF-8: Java writes a question mark, our code raises an error.
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
    """The bytes of a message, or random bytes, with some of them removed or replaced."""
    data = bytearray(draw(whole | st.binary(max_size=20)))
    for _ in range(draw(st.integers(1, 3))):
        begin = draw(st.integers(0, len(data)))
        end = draw(st.sampled_from([begin, begin + 1, begin + 4, len(data)]))
        data[begin:end] = draw(st.binary(max_size=3) | st.sampled_from([b"\0\0\0\0", b"\xff\xff", b"\xff\xff\xff\xff"]))
    return bytes(data)


def outcome(act: Callable[..., T], *arguments: object) -> T | str:
    """Return the result of a call, or that it refused the bytes."""
    try:
        return act(*arguments)
    except (ConsumerProtocolError, JavaException):
        return REFUSED


def decoded_in(version: int, subscription: Subscription) -> Subscription:
    """Return the subscription that a reader decodes if it was encoded in ``version``."""
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
def test_subscriptions_are_encoded_and_decoded_equally(
    kafka: KafkaClasses, subscription: Subscription, version: int
) -> None:
    theirs = kafka.encode_subscription(subscription, version)
    assert encode_subscription(subscription, version) == theirs
    assert decode_subscription(theirs) == decoded_in(version, subscription)


@on_random_examples()
@given(assignment=assignments, version=versions)
def test_assignments_are_encoded_and_decoded_equally(kafka: KafkaClasses, assignment: Assignment, version: int) -> None:
    theirs = kafka.encode_assignment(assignment, version)
    assert encode_assignment(assignment, version) == theirs
    read = decode_assignment(theirs)
    assert read.user_data == assignment.user_data
    assert sorted(read.partitions) == sorted(assignment.partitions)


@on_random_examples()
@given(data=damaged(st.builds(encode_subscription, subscriptions, versions)))
def test_damaged_subscriptions_are_refused_or_decoded_equally(kafka: KafkaClasses, data: bytes) -> None:
    def reencoded() -> bytes:
        return encode_subscription(decode_subscription(data))

    assert outcome(reencoded) == outcome(kafka.reencoded_subscription, data, NEWEST)
    assert outcome(subscribed_topics, data) == outcome(kafka.subscribed_topics, data)


@on_random_examples()
# A member without an assignment from the leader gets empty bytes, with which Kafka's consumers fail.
@given(data=damaged(st.builds(encode_assignment, assignments, versions)).filter(bool))
def test_damaged_assignments_are_refused_or_decoded_equally(kafka: KafkaClasses, data: bytes) -> None:
    def reencoded() -> bytes:
        return encode_assignment(decode_assignment(data))

    assert outcome(reencoded) == outcome(kafka.reencoded_assignment, data, NEWEST)


@pytest.mark.parametrize("version", [-1, -(2**15)])
def test_a_negative_version_is_refused(kafka: KafkaClasses, version: int) -> None:
    for write in (encode_subscription, kafka.encode_subscription):
        assert outcome(write, Subscription(["t"]), version) == REFUSED
    for write_assignment in (encode_assignment, kafka.encode_assignment):
        assert outcome(write_assignment, Assignment(), version) == REFUSED


@on_random_examples()
@given(assignment=assignments, generation=int32)
def test_user_data_of_cooperative_consumers_is_encoded_equally(
    kafka: KafkaClasses, assignment: Assignment, generation: int
) -> None:
    assignor = assignor_by_name("cooperative-sticky")
    assignor.on_assignment(assignment, generation)
    assert assignor.subscription_user_data() == kafka.user_data("cooperative-sticky", assignment, generation)


@on_random_examples()
@given(assignment=assignments, generation=int32)
def test_user_data_of_sticky_consumers_is_encoded_and_decoded_equally(
    kafka: KafkaClasses, assignment: Assignment, generation: int
) -> None:
    assignor = assignor_by_name("sticky")
    assignor.on_assignment(assignment, generation)
    ours, theirs = assignor.subscription_user_data(), kafka.user_data("sticky", assignment, generation)
    assert ours is not None
    assert theirs is not None
    # Kafka writes topics in the order of a hash map, so the bytes can differ.
    assert len(ours) == len(theirs)
    for user_data in (ours, theirs):
        read = decode_owned_partitions(user_data)
        assert (sorted(read.partitions), read.generation) == (sorted(assignment.partitions), generation)
