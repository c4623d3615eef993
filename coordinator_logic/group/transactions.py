"""The open transactions of a group."""

import msgspec

from coordinator_logic.committed_offsets import Offsets


class OpenTransaction(msgspec.Struct, array_like=True):
    """The pending offsets of a producer's open transaction; none are left if their topics were deleted."""

    producer_epoch: int
    offsets: Offsets = {}
