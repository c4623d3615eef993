"""Files of offsets: what is written can be read, and so can what Kafka's tool writes."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_logic.embedded_protocols import TopicPartition
from streaming.explain.offsets.files import FileFormat, UnreadableOffsetsFile, decoded, encoded, format_of
from streaming.explain.offsets.plan import Position
from tests.support.properties import examples

TOPIC_ID = "-QXTr5ZaQ4aTOGxdwzcvBw"
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=8)
POSITIONS = st.dictionaries(
    st.builds(TopicPartition, TEXTS.filter(bool), st.integers(0, 2**31 - 1)),
    st.builds(Position, st.integers(0, 2**63 - 1), st.integers(-1, 2**31 - 1), TEXTS, st.sampled_from(("", TOPIC_ID))),
    min_size=1,
    max_size=5,
)


@pytest.mark.parametrize("file_format", FileFormat)
@given(positions=POSITIONS)
@examples(50)
def test_what_is_written_is_read(file_format: FileFormat, positions: dict[TopicPartition, Position]) -> None:
    assert decoded(encoded(positions, file_format), file_format) == positions


def test_the_csv_has_a_first_line_and_sorted_partitions() -> None:
    positions = {TopicPartition("t", 1): Position(5, 2, "a,b", TOPIC_ID), TopicPartition("t", 0): Position(7)}
    text = encoded(positions, FileFormat.CSV).decode()
    assert text == f'topic,partition,offset,leaderEpoch,metadata,topicId\nt,0,7,-1,,\nt,1,5,2,"a,b",\'{TOPIC_ID}\n'


def test_the_csv_of_an_earlier_release_is_read() -> None:
    content = b'topic,partition,offset,leaderEpoch,metadata\nt,1,5,2,"a,b"\n'
    assert decoded(content, FileFormat.CSV) == {TopicPartition("t", 1): Position(5, 2, "a,b")}


def test_the_csv_of_kafkas_tool_is_read() -> None:
    assert decoded(b"orders,0,17\norders,1,4\n", FileFormat.CSV) == {
        TopicPartition("orders", 0): Position(17),
        TopicPartition("orders", 1): Position(4),
    }


@pytest.mark.parametrize(
    ("content", "file_format", "why"),
    [
        (b"", FileFormat.CSV, "no offsets"),
        (b"t,0\n", FileFormat.CSV, "columns"),
        (b"t,0,x\n", FileFormat.CSV, "int"),
        (b"t,0,1\nt,0,2\n", FileFormat.CSV, "two offsets"),
        (b"t,0,-1\n", FileFormat.CSV, "negative"),
        (b"t,0,1,-1,,no id\n", FileFormat.CSV, "topicId"),
        (b"\xff,0,1\n", FileFormat.CSV, "utf-8"),
        (b"[]", FileFormat.JSON, "no offsets"),
        (b"{}", FileFormat.JSON, "array"),
        (b'[{"topic":"t","partition":0}]', FileFormat.JSON, "offset"),
        (b"not parquet", FileFormat.PARQUET, "Parquet"),
    ],
)
def test_a_file_without_offsets_is_refused_with_the_reason(content: bytes, file_format: FileFormat, why: str) -> None:
    with pytest.raises(UnreadableOffsetsFile, match=why):
        decoded(content, file_format)


def test_the_name_of_a_file_tells_its_format() -> None:
    assert format_of(Path("a/offsets.PARQUET")) is FileFormat.PARQUET
    with pytest.raises(ValueError, match=r"\.csv, \.json, \.parquet"):
        format_of(Path("offsets.txt"))
