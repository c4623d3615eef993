"""The mapping of groups to partitions of ``group-requests``, Kafka's rule for ``__consumer_offsets``, and to slots."""

import sys

KNUTHS_MULTIPLIER = 0x9E3779B97F4A7C15
MAX_SLOTS = 2**30
NATIVE_UTF_16 = f"utf-16-{sys.byteorder[0]}e"


def java_string_hash(text: str) -> int:
    """Java's ``String.hashCode``: a signed 32-bit hash over UTF-16 code units."""
    value = 0
    # Nearly all group ids are ASCII, of which the bytes are the units.
    units = text.encode() if text.isascii() else memoryview(text.encode(NATIVE_UTF_16, "surrogatepass")).cast("H")
    for unit in units:
        value = (31 * value + unit) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def hash_table_slot(key: str, slots: int = MAX_SLOTS) -> int:
    """The slot of a key in a hash table in which a broker's coordinator keeps groups and members.

    Its answers list them by slot. ``slots`` is a power of two; with more of them than the table has, keys come in the
    same order, but for those that share a slot there (Kafka's ``BaseHashTable.findSlot``).
    """
    return java_string_hash(key) * KNUTHS_MULTIPLIER % 2**64 * slots >> 64


def partition_for(group_id: str, partition_count: int) -> int:
    """Return the partition of a group, from 0 to ``partition_count - 1``.

    As Kafka does (``Utils.abs``), take the absolute value of the hash, and 0 for the minimum of int32, which has no
    absolute value in 32 bits. Clearing the sign bit instead gives another result for every negative hash.
    """
    hashed = java_string_hash(group_id)
    return 0 if hashed == -(1 << 31) else abs(hashed) % partition_count
