"""Encoding and decoding of subscriptions and assignments."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from tests.logic.assignors.groups import partitions

INT32 = st.integers(-(2**31), 2**31 - 1)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
TOPIC_PARTITIONS = st.lists(st.builds(TopicPartition, st.sampled_from(["a", "b", "é", "😀"]), INT32))
SUBSCRIPTIONS = st.builds(
    Subscription,
    topics=st.lists(NAMES),
    user_data=st.none() | st.binary(),
    owned_partitions=TOPIC_PARTITIONS,
    generation_id=INT32,
    rack_id=st.none() | NAMES,
)

# Two topics and two bytes of user data, then the fields that each version appends.
V0_FIELDS = bytes.fromhex("00000002 0002 7431 0002 7432 00000002 beef")
V1_FIELDS = bytes.fromhex("00000002 0002 7431 00000002 00000000 00000002 0002 7432 00000001 00000001")
V2_FIELDS = bytes.fromhex("00000007")
V3_FIELDS = bytes.fromhex("0002 7231")
FULL = Subscription(["t2", "t1"], b"\xbe\xef", partitions("t2-1 t1-2 t1-0"), generation_id=7, rack_id="r1")
FULL_BY_VERSION = [
    b"\0\0" + V0_FIELDS,
    b"\0\1" + V0_FIELDS + V1_FIELDS,
    b"\0\2" + V0_FIELDS + V1_FIELDS + V2_FIELDS,
    b"\0\3" + V0_FIELDS + V1_FIELDS + V2_FIELDS + V3_FIELDS,
]
BARE_V3 = bytes.fromhex("0003 00000001 0001 74 ffffffff 00000000 ffffffff ffff")


def in_version(subscription: Subscription, version: int) -> Subscription:
    """The subscription that a reader decodes after it was encoded in that version."""
    # Java compares strings by UTF-16 code units, and so does Kafka when it sorts topics.
    return Subscription(
        topics=sorted(subscription.topics, key=lambda topic: topic.encode("utf-16-be")),
        user_data=subscription.user_data,
        owned_partitions=sorted(subscription.owned_partitions) if version >= 1 else [],
        generation_id=max(-1, subscription.generation_id) if version >= 2 else -1,
        rack_id=(subscription.rack_id or None) if version >= 3 else None,
    )


class TestSubscription:
    @pytest.mark.parametrize("version", range(4))
    def test_each_version_appends_its_fields_and_sorts_topics_and_partitions(self, version: int) -> None:
        assert encode_subscription(FULL, version) == FULL_BY_VERSION[version]

    def test_absent_fields_are_encoded_as_null_and_minus_one(self) -> None:
        assert encode_subscription(Subscription(["t"])) == BARE_V3
        assert decode_subscription(BARE_V3) == Subscription(["t"])

    @given(SUBSCRIPTIONS, st.integers(0, 3))
    def test_decoding_returns_the_fields_that_the_version_has(self, subscription: Subscription, version: int) -> None:
        data = encode_subscription(subscription, version)
        assert decode_subscription(data) == in_version(subscription, version)
        assert encode_subscription(decode_subscription(data), version) in (
            data,
            data[:-2] + b"\xff\xff",  # an empty rack was read as none
        )

    def test_topics_are_sorted_by_utf16_code_unit(self) -> None:
        # U+FF41 comes before U+1F600 as a code point, and after its surrogates D83D DE00.
        assert decode_subscription(encode_subscription(Subscription(["\uff41", "\U0001f600"]))).topics == [
            "\U0001f600",
            "\uff41",
        ]

    def test_equal_subscriptions_have_equal_bytes_in_any_order_of_their_elements(self) -> None:
        one = Subscription(["a", "b"], owned_partitions=partitions("b-0 a-1 a-0"))
        other = Subscription(["b", "a"], owned_partitions=partitions("a-0 b-0 a-1"))
        assert encode_subscription(one) == encode_subscription(other)

    def test_a_higher_version_is_read_and_written_as_version_3(self) -> None:
        assert decode_subscription(b"\0\4" + FULL_BY_VERSION[3][2:] + b"new") == in_version(FULL, 3)
        assert encode_subscription(FULL, 4) == FULL_BY_VERSION[3]

    def test_a_negative_version_is_refused(self) -> None:
        with pytest.raises(ConsumerProtocolError, match="version -1"):
            decode_subscription(b"\xff\xff" + V0_FIELDS)
        with pytest.raises(ConsumerProtocolError, match="version -1"):
            encode_subscription(FULL, -1)

    def test_an_empty_rack_and_a_negative_generation_mean_none(self) -> None:
        data = bytes.fromhex("0003 00000000 ffffffff 00000000 fffffff0 0000")
        assert decode_subscription(data) == Subscription([])

    @pytest.mark.parametrize("version", range(4))
    def test_every_truncation_is_refused(self, version: int) -> None:
        data = FULL_BY_VERSION[version]
        for length in range(len(data)):
            with pytest.raises(ConsumerProtocolError):
                decode_subscription(data[:length])

    @pytest.mark.parametrize(
        ("defect", "data"),
        [
            ("topics are null", "0000 ffffffff ffffffff"),
            ("a topic is null", "0000 00000001 ffff ffffffff"),
            ("more topics than bytes", "0000 7fffffff ffffffff"),
            ("owned partitions are null", "0001 00000000 ffffffff ffffffff"),
            ("partition numbers are null", "0001 00000000 ffffffff 00000001 0001 74 ffffffff"),
            ("user data longer than the rest", "0000 00000000 00000005 0102"),
        ],
    )
    def test_malformed_bytes_are_refused(self, defect: str, data: str) -> None:
        with pytest.raises(ConsumerProtocolError):
            decode_subscription(bytes.fromhex(data))

    def test_a_topic_that_is_not_utf8_is_read_with_replacement_characters(self) -> None:
        data = bytes.fromhex("0000 00000001 0001 ff ffffffff")
        assert decode_subscription(data).topics == ["\N{REPLACEMENT CHARACTER}"]

    @pytest.mark.parametrize(
        "subscription",
        [
            Subscription(["x" * 0x8000]),
            Subscription(["\ud800"]),
            Subscription([], owned_partitions=[TopicPartition("t", 2**31)]),
            Subscription([], generation_id=2**31),
        ],
        ids=["long topic", "half a surrogate pair", "large partition", "large generation"],
    )
    def test_a_value_that_does_not_fit_its_field_is_refused(self, subscription: Subscription) -> None:
        with pytest.raises(ConsumerProtocolError):
            encode_subscription(subscription)


class TestSubscribedTopics:
    @pytest.mark.parametrize("version", range(4))
    def test_are_decoded_in_every_version(self, version: int) -> None:
        assert subscribed_topics(FULL_BY_VERSION[version]) == {"t1", "t2"}

    def test_are_decoded_for_any_version_number(self) -> None:
        assert subscribed_topics(b"\xff\xff" + V0_FIELDS) == {"t1", "t2"}
        assert subscribed_topics(b"\x7f\xff" + V0_FIELDS) == {"t1", "t2"}

    def test_are_decoded_despite_unreadable_fields_of_later_versions(self) -> None:
        assert subscribed_topics(b"\0\3" + V0_FIELDS + b"\xff") == {"t1", "t2"}

    def test_require_all_fields_of_version_0(self) -> None:
        for length in range(2 + len(V0_FIELDS)):
            with pytest.raises(ConsumerProtocolError):
                subscribed_topics(FULL_BY_VERSION[3][:length])


class TestAssignment:
    # t2 first, in the order of the assignor.
    BODY = bytes.fromhex("00000002 0002 7432 00000002 00000001 00000000 0002 7431 00000001 00000002 00000001 09")
    ASSIGNMENT = Assignment(partitions("t2-1 t2-0 t1-2"), b"\x09")

    @pytest.mark.parametrize("version", range(4))
    def test_has_the_same_layout_in_every_version_and_keeps_its_order(self, version: int) -> None:
        data = bytes([0, version]) + self.BODY
        assert encode_assignment(self.ASSIGNMENT, version) == data
        assert decode_assignment(data) == self.ASSIGNMENT

    @given(TOPIC_PARTITIONS, st.none() | st.binary(), st.integers(0, 3))
    def test_decoding_returns_the_partitions_grouped_by_topic(
        self, assigned: list[TopicPartition], user_data: bytes | None, version: int
    ) -> None:
        first_seen = list(dict.fromkeys(tp.topic for tp in assigned))
        decoded = decode_assignment(encode_assignment(Assignment(assigned, user_data), version))
        assert decoded.partitions == sorted(assigned, key=lambda tp: first_seen.index(tp.topic))
        assert decoded.user_data == user_data

    def test_empty_bytes_are_an_empty_assignment(self) -> None:
        assert decode_assignment(b"") == Assignment([], None)

    def test_a_higher_version_is_read_and_written_as_version_3(self) -> None:
        assert decode_assignment(b"\0\7" + self.BODY + b"new") == self.ASSIGNMENT
        assert encode_assignment(self.ASSIGNMENT, 7) == b"\0\3" + self.BODY

    def test_a_negative_version_is_refused(self) -> None:
        with pytest.raises(ConsumerProtocolError, match="version -1"):
            decode_assignment(b"\xff\xff" + self.BODY)
        with pytest.raises(ConsumerProtocolError, match="version -1"):
            encode_assignment(self.ASSIGNMENT, -1)

    def test_every_truncation_except_to_empty_bytes_is_refused(self) -> None:
        data = encode_assignment(self.ASSIGNMENT)
        for length in range(1, len(data)):
            with pytest.raises(ConsumerProtocolError):
                decode_assignment(data[:length])


@st.composite
def damaged_subscriptions(draw: st.DrawFn) -> bytes:
    """An encoded subscription with some bytes overwritten anywhere."""
    data = bytearray(encode_subscription(draw(SUBSCRIPTIONS), draw(st.integers(0, 3))))
    for _ in range(draw(st.integers(1, 3))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data)


@given(st.binary() | damaged_subscriptions())
def test_arbitrary_bytes_are_decoded_or_refused(data: bytes) -> None:
    for read in (decode_subscription, decode_assignment, subscribed_topics):
        try:
            read(data)
        except ConsumerProtocolError:
            continue
