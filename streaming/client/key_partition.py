"""The partition that Kafka's producer chooses for a record by its key."""

_MASK = 0xFFFFFFFF
_SEED, _MULTIPLIER, _SHIFT = 0x9747B28C, 0x5BD1E995, 24


def partition_of_key(key: bytes, partition_count: int) -> int:
    """The partition of a record with this key, as Java's producer chooses it by default: MurmurHash2, sign cleared."""
    return (_murmur2(key) & 0x7FFFFFFF) % partition_count


def _murmur2(key: bytes) -> int:
    """MurmurHash2 of 32 bits with the seed of Kafka's ``Utils.murmur2``."""
    value = _SEED ^ len(key)
    whole = len(key) & ~3
    for place in range(0, whole, 4):
        word = int.from_bytes(key[place : place + 4], "little") * _MULTIPLIER & _MASK
        word = (word ^ word >> _SHIFT) * _MULTIPLIER & _MASK
        value = value * _MULTIPLIER & _MASK ^ word
    if whole < len(key):
        value = (value ^ int.from_bytes(key[whole:], "little")) * _MULTIPLIER & _MASK
    value = (value ^ value >> 13) * _MULTIPLIER & _MASK
    return value ^ value >> 15
