"""The committed offsets of a group, and how a snapshot stores them: each topic by itself, in columns.

The room imports stored parts only.
"""

from coordinator_logic.committed_offsets.offset import CommittedOffset, Offsets
from coordinator_logic.committed_offsets.stored import StoredOffsets, offset_count

__all__ = ["CommittedOffset", "Offsets", "StoredOffsets", "offset_count"]
