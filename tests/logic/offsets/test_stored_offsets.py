"""Offsets in a snapshot: they are those that were committed, they take few bytes, and only what is needed is read."""

from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from coordinator_logic import snapshot
from coordinator_logic.committed_offsets import CommittedOffset, Offsets, StoredOffsets, offset_count
from coordinator_logic.committed_offsets.columns import CHUNK
from coordinator_logic.committed_offsets.partitions import StoredPartitions, encode_topic
from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.group import Group
from coordinator_logic.step import step
from coordinator_logic.stored_parts import UnreadablePart
from tests.logic.driver import GROUP_ID
from tests.logic.strategies import STORIES, Move, values_of
from tests.logic.test_properties import played
from tests.support.properties import examples

FIRST = CommittedOffset(1_000_000, None, "", 1_700_000_000_000, None, 7)
ENDS = st.sampled_from([0, 1, 255, 256, 2**16, 2**32, 2**63 - 1, -1, -(2**63), 2**64 - 1])
OFFSETS = values_of(CommittedOffset) | st.builds(replace, st.just(FIRST), offset=ENDS | st.integers(0, 300))
PARTITIONS = st.integers(0, 8) | st.integers(0, 2**31 - 1)


def offsets(count: int, first: int = 0) -> dict[int, CommittedOffset]:
    """Offsets of consecutive partitions that range over a hundred thousand."""
    return {each: replace(FIRST, offset=10**6 + each * 7919 % 100_003) for each in range(first, first + count)}


def stored(topics: Offsets) -> StoredOffsets:
    """The offsets as the next batch reads them."""
    return StoredOffsets(StoredOffsets.of(topics).for_snapshot(), offset_count(topics))


@given(st.dictionaries(PARTITIONS, OFFSETS, max_size=6))
def test_the_offsets_of_a_topic_are_read_as_they_were_committed_in_their_order(
    committed: dict[int, CommittedOffset],
) -> None:
    encoded = encode_topic(committed)
    read = StoredPartitions(encoded)
    assert list(read) == list(committed)
    assert list(read.items()) == list(committed.items())
    assert [read[partition] for partition in committed] == list(committed.values())
    assert read.encoded() == encode_topic(read) == encoded


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["commit", "commit", "commit", "delete", "delete topic", "read", "store", "clear"]),
        st.sampled_from(["a", "a", "b"]),
        st.sampled_from([0, 1, CHUNK - 1, CHUNK, 2 * CHUNK]),
        st.sampled_from([1, 3, CHUNK + 1, 3 * CHUNK]),
        st.integers(0, 5),
    ),
    min_size=4,
    max_size=12,
)


@given(CHANGES)
@examples(100)
def test_after_any_changes_the_bytes_are_those_of_the_same_offsets_in_a_new_group(
    changes: list[tuple[str, str, int, int, int]],
) -> None:
    expected: Offsets = {}
    found: Offsets = stored({})
    for change, topic, partition, count, offset in changes:
        partitions = range(partition, partition + count)
        match change:
            case "commit":
                for each in partitions:
                    for each_offsets in (expected, found):
                        each_offsets.setdefault(topic, {})[each] = replace(FIRST, offset=offset + each % 3)
            case "delete" if topic in expected:
                for each in partitions:
                    assert (expected[topic].pop(each, None) is None) == (found[topic].pop(each, None) is None)
            case "delete topic" if topic in expected:
                del expected[topic], found[topic]
            case "read":
                assert found.get(topic, {}).get(partition) == expected.get(topic, {}).get(partition)
            case "store":
                found = stored(found)
            case "clear" if offset == 0:
                expected.clear()
                found.clear()
        assert offset_count(found) == offset_count(expected)
        assert (list(found), bool(found)) == (list(expected), bool(expected))
    assert {topic: list(each.items()) for topic, each in found.items()} == {
        topic: list(each.items()) for topic, each in expected.items()
    }
    assert stored(found).for_snapshot() == stored(expected).for_snapshot()


def in_format_7(group: Group) -> bytes:
    """The snapshot as it was before offsets had columns."""
    values = msgspec.structs.asdict(snapshot.decode(snapshot.encode(group)))
    values["offsets"] = {topic: dict(each.items()) for topic, each in group.offsets.items()}
    values["stored_offset_count"] = offset_count(group.offsets)
    encoder = msgspec.msgpack.Encoder(enc_hook=lambda part: part.for_snapshot())
    return b"\x07" + encoder.encode(list(values.values()))


@given(STORIES)
@examples(60)
def test_a_group_answers_and_records_the_same_bytes_as_with_the_former_format(moves: list[Move]) -> None:
    config = CoordinatorConfig(group_initial_rebalance_delay_ms=0, offsets_retention_minutes=1)
    written: list[tuple[bytes, bytes | None]] = []
    for encode in (snapshot.encode, in_format_7):
        kept: bytes | None = None
        sent = b""
        for request in played(moves, group_initial_rebalance_delay_ms=0).log:
            group = None if kept is None else snapshot.decode(kept)
            result = step(GROUP_ID, group, [request], request.place.timestamp, started_at=0, config=config)
            sent += msgspec.json.encode((result.responses, result.journal, result.wake_at))
            kept = None if result.group is None else encode(result.group)
        written.append((sent, None if kept is None else snapshot.encode(snapshot.decode(kept))))
    assert written[0] == written[1]


# ---- what is not needed ----------------------------------------------------------------------------------------


def test_ten_thousand_offsets_that_range_over_a_hundred_thousand_take_37_kilobytes() -> None:
    topics: Offsets = {f"topic-{number}": offsets(100) for number in range(100)}
    assert len(snapshot.encode(Group("g", "0-0", offsets=topics))) < 37_500
    assert len(in_format_7(Group("g", "0-0", offsets=topics))) > 200_000


def test_a_commit_decodes_one_chunk_and_changes_no_other_bytes() -> None:
    encoded = StoredOffsets.of({"used": offsets(3 * CHUNK), "other": offsets(1)}).for_snapshot()
    chunks: list[bytes] = msgspec.msgpack.decode(encoded["used"])
    # The columns are damaged, the partitions are not.
    damaged = [chunk if place == 1 else chunk[:-1] + b"\x00" for place, chunk in enumerate(chunks)]
    found = StoredOffsets({"used": msgspec.msgpack.encode(damaged), "other": b"damaged"}, 3 * CHUNK + 1)
    found["used"][CHUNK + 1] = replace(FIRST, offset=5)
    again = found.for_snapshot()
    assert again["other"] == b"damaged"
    first, changed, last = msgspec.msgpack.decode(again["used"])
    assert (first, last) == (damaged[0], damaged[2])
    assert changed != damaged[1]
    assert StoredPartitions(again["used"])[CHUNK + 1].offset == 5
    assert offset_count(found) == 3 * CHUNK + 1


def test_partitions_that_were_added_fill_the_last_chunk() -> None:
    found = StoredPartitions(encode_topic(offsets(CHUNK - 1)))
    for partition, offset in offsets(3, first=CHUNK - 1).items():
        found[partition] = offset
    assert found.encoded() == encode_topic(offsets(CHUNK + 2))


def test_partitions_that_were_deleted_leave_the_bytes_of_the_others() -> None:
    others = {partition: offset for partition, offset in offsets(2 * CHUNK + 1).items() if partition != 3}
    found = StoredPartitions(encode_topic(offsets(2 * CHUNK + 1)))
    del found[3]
    assert found.encoded() == encode_topic(others)
    found[3] = FIRST
    assert list(found) == [*others, 3], "the partition is behind those that were committed before"
    assert found.encoded() == encode_topic({**others, 3: FIRST})


# ---- damage ----------------------------------------------------------------------------------------------------


@given(st.sampled_from([3, CHUNK + 3]), st.data())
@examples(300)
def test_damaged_offsets_are_read_as_others_or_raise(count: int, data: st.DataObject) -> None:
    encoded = bytearray(encode_topic({**offsets(count), 2**31 - 1: replace(FIRST, leader_epoch=3, metadata="é")}))
    for _ in range(data.draw(st.integers(1, 3))):
        encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    length = data.draw(st.sampled_from([len(encoded), len(encoded) - 1, data.draw(st.integers(0, len(encoded)))]))
    with suppress(UnreadablePart):
        found = StoredPartitions(bytes(encoded[:length]))
        assert len(list(found.items())) == len(found) <= count + CHUNK


@pytest.mark.parametrize(
    "chunk",
    [
        [0, 0, 1, None, "", 0, None, 0, ""],
        [2**40, 0, 1, None, "", 0, None, 0, ""],
        [2, [1, 2], 1, None, "", 0, None, 0, ""],
        [2, b"1:\x00\x00", 1, None, "", 0, None, 0, ""],
        [2, 0, b"", None, "", 0, None, 0, ""],
        [2, 0, b"one:\x00\x01", None, "", 0, None, 0, ""],
        [2, 0, b"1\x00\x01", None, "", 0, None, 0, ""],
        [2, 0, b"1:\x00\x01\x02", None, "", 0, None, 0, ""],
        [2, 0, b"1:" + bytes(22), None, "", 0, None, 0, ""],
        [2, 0, 1, None, ["one"], 0, None, 0, ""],
        [2, 0, None, None, "", 0, None, 0, ""],
    ],
)
def test_a_chunk_that_no_release_has_written_raises(chunk: list[object]) -> None:
    with pytest.raises(UnreadablePart, match="its offsets are damaged: "):
        list(StoredPartitions(msgspec.msgpack.encode([msgspec.msgpack.encode(chunk)])).items())


def test_a_chunk_that_is_not_the_last_must_be_full() -> None:
    chunks = [msgspec.msgpack.decode(encode_topic(offsets(2, first)))[0] for first in (0, 2)]
    with pytest.raises(UnreadablePart, match="a chunk has too few"):
        StoredPartitions(msgspec.msgpack.encode(chunks))
