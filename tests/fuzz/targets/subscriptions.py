"""The consumer embedded protocol: the metadata of members and the assignments of leaders."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeVar

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

T = TypeVar("T")

OWNED = [TopicPartition("payments", 0), TopicPartition("payments", 1), TopicPartition("é", 2)]


def seeds() -> Iterator[bytes]:
    """A subscription and an assignment of each version."""
    for version in range(4):
        yield b"\x00" + encode_subscription(Subscription(["payments", "é"], b"data", OWNED, 5, "rack"), version)
        yield b"\x01" + encode_assignment(Assignment(OWNED, b"data"), version)


def run(data: bytes) -> None:
    """Decode, and encode again what can be decoded: that must decode to the same."""
    if not data:
        return
    kind, content = data[0] % 2, data[1:]
    with suppress(ConsumerProtocolError):
        subscribed_topics(content)
    if kind == 0:
        _round_trip(content, decode_subscription, encode_subscription)
    else:
        _round_trip(content, decode_assignment, encode_assignment)


def _round_trip(content: bytes, decode: Callable[[bytes], T], encode: Callable[[T], bytes]) -> None:
    # Encoding fails for a string that is too long once its invalid UTF-8 is replaced.
    with suppress(ConsumerProtocolError):
        encoded = encode(decode(content))
        assert encode(decode(encoded)) == encoded
