"""A group as the state store keeps it."""

from struct import Struct
from typing import NamedTuple

from coordinator_logic import snapshot
from coordinator_logic.committed_offsets import offset_count
from coordinator_logic.group import Group
from streaming.job.rows.records import SizeLimits
from streaming.job.rows.writing import RowTooLarge

QUARANTINED_MARK = -1

LEAST_BYTES_OF_AN_OFFSET = 22
"""An offset counts for as much towards the limit of a group: columns of equal values take fewer, memory does not."""


class StateRow(NamedTuple):
    """A group in the state store.

    Earlier releases wrote the two times (ms since the epoch) beside the snapshot. They are part of the snapshot now,
    and 0 here in what this release writes. They are still read, so that a checkpoint of an earlier release keeps its
    groups. In a quarantined group, :data:`QUARANTINED_MARK` takes the place of the first. While requests are replayed,
    the negative epoch of a start takes the place of the second (:meth:`with_replayed_epoch`).
    """

    snapshot: bytes
    join_answered_at: int = 0
    sessions_from: int = 0

    @classmethod
    def unpacked(cls, stored: bytes) -> "StateRow":
        """Unpack the state's column, as :meth:`packed` wrote it. Damaged bytes are a snapshot that cannot be read."""
        if len(stored) < _TIMES.size:
            return cls(stored)
        return cls(stored[_TIMES.size :], *_TIMES.unpack_from(stored))

    @property
    def is_quarantined(self) -> bool:
        """Whether an earlier batch could not read the snapshot, and the directory says so."""
        return self.join_answered_at == QUARANTINED_MARK

    def quarantined(self) -> "StateRow":
        """The row with the mark of a quarantined group."""
        return self._replace(join_answered_at=QUARANTINED_MARK)

    @property
    def replayed_epoch(self) -> int:
        """The epoch of :meth:`with_replayed_epoch`, 0 without one."""
        return max(0, -self.sessions_from)

    def with_replayed_epoch(self, epoch: int) -> "StateRow":
        """The row of a group for which the starts before the one with this epoch have been replayed to their end."""
        return self._replace(sessions_from=-epoch)

    def packed(self) -> bytes:
        """Pack the row for the state's column: the two times as big-endian int64, then the snapshot."""
        return _TIMES.pack(self.join_answered_at, self.sessions_from) + self.snapshot


_TIMES = Struct(">qq")


def load(stored: StateRow | None) -> Group | None:
    """Decode the stored group. Raises :class:`~coordinator_logic.snapshot.UnreadableSnapshot`."""
    if stored is None:
        return None
    group = snapshot.decode(stored.snapshot)
    if stored.join_answered_at and not stored.is_quarantined:
        group.join_answered_at = stored.join_answered_at
    if stored.sessions_from > 0:
        group.sessions_from = stored.sessions_from
    return group


def load_whole(stored: bytes) -> Group:
    """Decode the group in the state's column with its offsets, which are otherwise decoded on first access.

    Raises :class:`~coordinator_logic.snapshot.UnreadableSnapshot` and
    :class:`~coordinator_logic.stored_parts.UnreadablePart`.
    """
    group = load(StateRow.unpacked(stored))
    assert group is not None
    list(group.committed_offsets())
    return group


def store(group: Group | None, limits: SizeLimits) -> StateRow | None:
    """Encode a group; None if it does not exist. Raises :class:`RowTooLarge`."""
    if group is None:
        return None
    encoded = snapshot.encode(group)
    size = max(len(encoded), offset_count(group.offsets) * LEAST_BYTES_OF_AN_OFFSET)
    if size > limits.snapshot:
        raise RowTooLarge(f"the group would have {size} bytes; the limit is {limits.snapshot}")
    return StateRow(encoded)
