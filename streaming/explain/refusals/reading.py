"""Reads the requests of a group for its story, if that does not take long."""

from collections.abc import Callable
from typing import NamedTuple

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.partitioning import partition_for
from streaming.client.errors import CoordinatorError
from streaming.client.librdkafka import LibrdkafkaConfig
from streaming.explain.refusals.judging import Judge
from streaming.explain.refusals.told import refused_of
from streaming.explain.replay.case import Case
from streaming.explain.replay.request_log import RequestLog, Stretch
from streaming.explain.story.model import Refused
from streaming.explain.story.words import clock
from streaming.journal.reader import ReadingProgress

AFFORDABLE_RECORDS = 100_000
"""How many records are read unasked. If all are the group's, to decode and judge them takes a second or so."""


class Part(NamedTuple):
    """The time of which requests are read, ms since the epoch; ``until`` is None for no end."""

    since: int = 0
    until: int | None = None


class KeptRequests(NamedTuple):
    """A judge of the requests that were read, from when on they were, and notes about them; or why none was read."""

    judge: Judge | None
    since: int | None
    notes: list[str]

    def told(self) -> Refused:
        """The refusals, after the judge has seen the journal."""
        return Refused(self.since, notes=self.notes) if self.judge is None else refused_of(self.judge, *self[1:])


def kept_requests(
    config: LibrdkafkaConfig,
    topic: str,
    group_id: str,
    timeout: float,
    client_id: str,
    part: Part,
    *,
    must_read: bool,
    report: Callable[[str], object],
) -> KeptRequests:
    """Read the requests of a group from the partition into which its clients and gateways write.

    Args:
        config: librdkafka's, with the brokers.
        topic: The topic of the requests.
        group_id: The group.
        timeout: The longest wait for the next records, in seconds.
        client_id: That of the consumer.
        part: The time of which requests are read.
        must_read: Read them however many there are, and raise CoordinatorError if that fails. Otherwise no more than
            :data:`AFFORDABLE_RECORDS` are read, and a note says what could not be.
        report: Is called with a line about the progress of a reading that takes long.
    """
    try:
        with RequestLog(str(config["bootstrap.servers"]), config, topic, timeout, client_id) as log:
            stretch = log.stretch(partition_for(group_id, len(log.partitions)), part.since, part.until)
            if stretch.records > AFFORDABLE_RECORDS and not must_read:
                return _none(
                    f"Refused requests are not shown: {stretch.records:,} records of {topic} would be read. "
                    "--refused reads them; a later --since leaves fewer."
                )
            return _read(log, stretch, topic, group_id, part, report)
    except CoordinatorError as error:
        if must_read:
            raise
        return _none(f"Refused requests are not shown, because {topic} cannot be read: {error.message}")


def _read(
    log: RequestLog, stretch: Stretch, topic: str, group_id: str, part: Part, report: Callable[[str], object]
) -> KeptRequests:
    progress = ReadingProgress(stretch.records, report, "requests")
    recorded, first = log.read([stretch], group_id, progress.add)
    begins_with_log = stretch.begin == stretch.kept_from
    since = max(part.since, first or 0) if begins_with_log else part.since
    requests = Case(group_id, recorded).readable()
    if not requests:
        return KeptRequests(None, since if first is not None else None, [f"{topic} has no request of the group."])
    notes = []
    if begins_with_log and stretch.kept_from > 0:
        notes.append(f"Requests are kept since {clock(since)}; earlier refusals are not known.")
    return KeptRequests(Judge(group_id, requests, CoordinatorConfig(requests_topic=topic)), since, notes)


def _none(note: str) -> KeptRequests:
    return KeptRequests(None, None, [note])
