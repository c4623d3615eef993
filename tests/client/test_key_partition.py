"""Java's producer and this project agree on the partition of a key."""

from hypothesis import example, given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2

from streaming.client.key_partition import partition_of_key


@given(st.binary(max_size=40), st.integers(1, 60))
@example(b"", 4)
@example("gr\u00fcn".encode(), 7)
def test_a_key_has_the_partition_of_another_implementation_of_the_rule(key: bytes, count: int) -> None:
    assert partition_of_key(key, count) == (murmur2(key) & 0x7FFFFFFF) % count


def test_known_hashes_of_kafkas_own_tests_give_their_partitions() -> None:
    # org.apache.kafka.common.utils.UtilsTest.testMurmur2
    known = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
    for key, hashed in known.items():
        assert partition_of_key(key, 1_000_003) == (hashed & 0x7FFFFFFF) % 1_000_003
