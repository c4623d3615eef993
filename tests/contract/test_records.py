"""The one way to read records of own topics: what cannot be read is skipped, counted, and reported once."""

import logging
import re
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from streaming.contract.records import RecordDecoder, SkippedKind, skipped_records

ROOT = Path(__file__).resolve().parents[2]

JUDGES = {
    "streaming/contract/records.py": "the one place",
    "streaming/client/coordinator_client.py": "the body of an answer, of which the caller learns",
    "streaming/gateway/groups/backend.py": "the same",
    "streaming/journal/entries.py": "in Spark's tasks, of whose counts nobody learns",
    "streaming/explain/tables/log_rows.py": "the same, and the table of requests shows what is wrong",
    "streaming/job/hostile_records/broken_envelopes.py": "requests, which are rejected and counted",
    "streaming/job/rows/reading.py": "the same",
    "streaming/job/backups/epochs.py": "a file of a checkpoint",
    "streaming/job/backups/manifest.py": "a file of a backup",
    "streaming/job/checkpoints/checkpoint.py": "a file of a checkpoint",
    "streaming/explain/offsets/files.py": "a file of the user",
    "streaming/cli/commands/offsets/restoring.py": "the same",
    "streaming/cli/commands/history/replay.py": "the same",
    "streaming/contract/option_sources.py": "the same",
    "streaming/contract/option_values.py": "the same",
    "streaming/embedded/folder_lock.py": "the file of a lock, which names its holder",
}
"""The files that handle what cannot be decoded, each with its reason."""

HANDLES = re.compile(r"except [^\n]*(UNREADABLE|msgspec\.(DecodeError|ValidationError|MsgspecError))")


class Named(msgspec.Struct):
    name: str


class Written(NamedTuple):
    """A record as a consumer returns it."""

    written_key: bytes | None
    written_value: bytes | None

    def key(self) -> bytes | None:
        return self.written_key

    def value(self) -> bytes | None:
        return self.written_value

    def partition(self) -> int:
        return 3

    def offset(self) -> int:
        return 17


def decoder(topic: str) -> RecordDecoder[Named]:
    return RecordDecoder(topic, "name", msgspec.json.Decoder(Named).decode, lambda named: named.name.encode())


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(b"garbage", id="no JSON"),
        pytest.param(b'{"name": "\xff"}', id="no UTF-8"),
        pytest.param(b'{"other": ' + b"[" * 100_000, id="nested deeply"),
        pytest.param(b'{"name": 5}', id="another type"),
        pytest.param(b"", id="empty"),
        pytest.param(b'{"name": "other"}', id="under the key of another one"),
    ],
)
def test_a_record_that_cannot_be_read_is_skipped_and_counted(value: bytes, request: pytest.FixtureRequest) -> None:
    topic = request.node.name
    names = decoder(topic)
    assert names.read(Written(b"one", value)) is None
    assert names.skipped == 1
    assert skipped_records()[SkippedKind(topic, "name")] == 1
    assert names.read(Written(b"one", b'{"name": "one"}')) == Named("one")


def test_a_tombstone_is_no_value_and_nothing_to_report() -> None:
    names = decoder("with-a-tombstone")
    assert names.read(Written(b"one", None)) is None
    assert names.skipped == 0


def test_a_thousand_of_a_kind_are_reported_once_also_when_they_are_read_again(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            names = decoder("with-a-thousand")
            for _ in range(1_000):
                names.read(Written(b"one", b"garbage"))
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith(
        "topic with-a-thousand, partition 3, offset 17 is not a valid name and is skipped: JSON is malformed"
    )
    assert skipped_records()[SkippedKind("with-a-thousand", "name")] == 3_000


def test_no_other_reader_of_topics_decides_what_happens_to_a_record_that_cannot_be_read() -> None:
    handling = {
        str(path.relative_to(ROOT)) for path in (ROOT / "streaming").rglob("*.py") if HANDLES.search(path.read_text())
    }
    assert handling == set(JUDGES)
