"""A group as bytes, and back: one byte of format version, then MessagePack without field names.

Format 1 is the first. A change that only appends fields with defaults keeps the version; any other change takes
the next one and leaves the reader of the old one in place, so that every snapshot ever written can be read.
"""

import msgspec

from coordinator_logic.group import Group
from coordinator_logic.states import State

FORMAT_VERSION = 1

_encoder = msgspec.msgpack.Encoder()
_decoders = {1: msgspec.msgpack.Decoder(Group)}


class UnreadableSnapshot(ValueError):
    """Bytes that are no snapshot this release can read."""


def encode(group: Group) -> bytes:
    """The group as bytes, in the current format."""
    return bytes((FORMAT_VERSION,)) + _encoder.encode(group)


def decode(snapshot: bytes) -> Group:
    """The group that the bytes hold; raises :class:`UnreadableSnapshot`."""
    if not snapshot:
        raise UnreadableSnapshot("the snapshot is empty")
    decoder = _decoders.get(snapshot[0])
    if decoder is None:
        known = ", ".join(map(str, _decoders))
        raise UnreadableSnapshot(f"the snapshot has format version {snapshot[0]}; readable here: {known}")
    try:
        return decoder.decode(memoryview(snapshot)[1:])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableSnapshot(f"the snapshot is damaged: {error}") from error


def quarantined(group_id: str) -> Group:
    """What stands in for a group whose snapshot cannot be read: Dead, so every request is told to come later."""
    return Group(group_id, "", state=State.DEAD)
