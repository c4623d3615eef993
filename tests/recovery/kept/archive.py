"""An archive of what an earlier release has written, unpacked for today's code."""

import base64
import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

from streaming.contract.topics import TopicNames
from streaming.job.checkpoints.checkpoint import TOPIC_FOLDER
from streaming.job.topics.creation import ensure_topics
from streaming.job.topics.layout import TopicLayout
from tests.support.kafka_io import append

ARCHIVES = Path(__file__).with_name("archives")
BACKUP, CONTENTS = "backup", "contents.json"
"""The folder and the file that an archive adds to the files of its checkpoint."""

REQUEST_PARTITIONS = RESPONSE_PARTITIONS = 2
OPTIONS = {
    "topic-prefix": "kept-",
    "request-partitions": REQUEST_PARTITIONS,
    "response-partitions": RESPONSE_PARTITIONS,
    # A second consumer gets its target at once.
    "group.consumer.assignment.interval.ms": 0,
    # Sessions outlast a slow test, and offsets do not expire, however old an archive is.
    "group.consumer.session.timeout.ms": 300_000,
    "group.consumer.max.session.timeout.ms": 300_000,
    "offsets.retention.minutes": 2**31 - 1,
}
TOPICS = TopicNames(str(OPTIONS["topic-prefix"]))

ALL = sorted(ARCHIVES.iterdir())
"""All archives, each named for its commit."""

WITH_CONSUMER_GROUPS = [archive for archive in ALL if archive.name.startswith("31aec04")]
"""Archives with consumer groups, the records of the journal and the directory, a backup and the groups' states."""


def commit_of(archive: Path) -> str:
    """The commit whose code has written an archive."""
    return archive.name.partition(".")[0]


class Unpacked:
    """An archive whose checkpoint is in ``folder``, and its backup, if it has one, beside it."""

    def __init__(self, archive: Path, folder: Path) -> None:
        self.checkpoint = folder / "checkpoint"
        self.backup = folder / BACKUP
        with tarfile.open(archive) as members:
            members.extractall(self.checkpoint, filter="data")
        if (self.checkpoint / BACKUP).exists():
            (self.checkpoint / BACKUP).rename(self.backup)
        self.contents: dict[str, Any] = json.loads((self.checkpoint / CONTENTS).read_text())
        (self.checkpoint / CONTENTS).unlink()

    @property
    def known(self) -> dict[str, Any]:
        """What the clients of each group know."""
        known: dict[str, Any] = self.contents["known"]
        return known

    def records(self, topic: str) -> list[tuple[int, bytes | None, bytes | None]]:
        """The kept records of ``requests``, ``journal`` or ``directory``: partition, key and value."""
        return [(partition, _bytes(key), _bytes(value)) for partition, key, value in self.contents[topic]]

    @property
    def states(self) -> dict[str, bytes]:
        """The stored state of each group, by group id."""
        return {group_id: base64.b64decode(state) for group_id, state in self.contents["states"].items()}

    def restore_topics(self, bootstrap_servers: str, *names: str) -> None:
        """Create all topics, and append what was kept of those with ``names``: each record has its former place."""
        layout = TopicLayout(request_partitions=REQUEST_PARTITIONS, response_partitions=RESPONSE_PARTITIONS)
        ensure_topics({"bootstrap.servers": bootstrap_servers}, TOPICS, layout)
        for name in names:
            records = self.records(name)
            for partition in sorted({partition for partition, _, _ in records}):
                in_order = [(key, value) for place, key, value in records if place == partition]
                append(bootstrap_servers, getattr(TOPICS, name), *in_order, partition=partition)


def forget_requests_topic(checkpoint: Path) -> None:
    """Forget which topic a checkpoint has read: its requests are restored to another one."""
    shutil.rmtree(checkpoint / TOPIC_FOLDER, ignore_errors=True)


def _bytes(column: str | None) -> bytes | None:
    return None if column is None else base64.b64decode(column)
