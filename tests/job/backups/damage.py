"""Plants faults in the state of the memory store, in files that Spark still reads."""

import struct
from pathlib import Path

from streaming.job.spark_internals.checkpoint_layout.needed_files import decompressed

_SEED = 0x9747B28C
_PRIMES = (2654435761, 2246822519, 3266489917, 668265263, 374761393)
_MASK = 2**32 - 1
_BLOCK_BYTES = 32 * 1024
_RAW = 0x15


def replace_in_state(checkpoint: Path, old: bytes, new: bytes) -> int:
    """Replace bytes by as many others in all files of the state; returns how many files had them."""
    assert len(old) == len(new)
    changed = 0
    for path in [*checkpoint.glob("state/0/*/*.delta"), *checkpoint.glob("state/0/*/*.snapshot")]:
        contents = decompressed(path.read_bytes(), 2**30)
        if old in contents:
            # Not in place: the file may be linked from elsewhere.
            path.unlink()
            path.write_bytes(_compressed(contents.replace(old, new)))
            changed += 1
    return changed


def _compressed(contents: bytes) -> bytes:
    """Contents as lz4-java's ``LZ4BlockOutputStream`` writes what it cannot make smaller."""
    blocks = [contents[place : place + _BLOCK_BYTES] for place in range(0, len(contents), _BLOCK_BYTES)]
    return b"".join(
        struct.pack("<8sBIII", b"LZ4Block", _RAW, len(block), len(block), _checksum(block)) + block
        for block in [*blocks, b""]
    )


def _checksum(block: bytes) -> int:
    """28 bits of XXH32; none for the end."""
    return _xxh32(block) & 0xFFFFFFF if block else 0


def _xxh32(data: bytes) -> int:
    """The hash of the xxHash specification, with lz4-java's seed."""
    first, second, third, fourth, fifth = _PRIMES
    place = 0
    if len(data) >= 16:
        lanes = [_SEED + first + second, _SEED + second, _SEED, _SEED - first]
        while place + 16 <= len(data):
            words = struct.unpack_from("<4I", data, place)
            lanes = [
                _rotated(lane + word * second, 13) * first & _MASK for lane, word in zip(lanes, words, strict=True)
            ]
            place += 16
        digest = sum(_rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
    else:
        digest = _SEED + fifth
    digest += len(data)
    while place + 4 <= len(data):
        digest = _rotated(digest + struct.unpack_from("<I", data, place)[0] * third, 17) * fourth
        place += 4
    for byte in data[place:]:
        digest = _rotated(digest + byte * fifth, 11) * first
    for shift, prime in ((15, second), (13, third)):
        digest &= _MASK
        digest = (digest ^ (digest >> shift)) * prime
    digest &= _MASK
    return digest ^ (digest >> 16)


def _rotated(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> (32 - bits)) & _MASK
