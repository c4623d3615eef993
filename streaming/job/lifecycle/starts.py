"""A start of the query: which requests it reads for the first time, and which an earlier job has read before.

A checkpoint that was restored from a copy is older than the last active job. That job has announced how far it had read
(:mod:`streaming.job.election`), and its journal tells the rest; its starts are on the same topic.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version

import msgspec
from pyspark.sql.streaming.query import StreamingQuery

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.records import RequestCause
from streaming.client.errors import CoordinatorError
from streaming.client.librdkafka import LibrdkafkaConfig
from streaming.contract.errors import BrokersFailed
from streaming.contract.output.text import counted
from streaming.job.checkpoints.checkpoint import Checkpoint
from streaming.job.election.announcements import CLIENT_ID, Reach
from streaming.job.group_batch.starts import NO_START, Start, copied_epoch, later
from streaming.job.lifecycle.job_session import JobSession, Report
from streaming.job.monitoring.metrics import Progress
from streaming.job.senders import Senders
from streaming.job.spark_internals.java_objects import JVM_IS_GONE, newest_progress_after
from streaming.job.topics.creation import admin_client
from streaming.job.topics.layout import Partitions
from streaming.job.topics.losses import count_replayed, end_offsets, first_offsets, within_log
from streaming.journal.reader import journal_entries

JOURNAL_MARGIN_MS = 5_000
"""The journal is read from so long before the last announcement."""

LIMIT_SECONDS = 10.0


def new_start(
    session: JobSession,
    checkpoint: Checkpoint,
    config: CoordinatorConfig,
    senders: Senders,
    partitions: Partitions,
    report: Report,
    *,
    after_rival: bool = False,
) -> tuple[Start, ...]:
    """Announce and record a start of the query; returns the starts that its groups need, this one last.

    ``after_rival``: the newest batch was planned by the job that was active before this one, and no batch by this one.

    Raises:
        BrokersFailed: the journal cannot be read.
        CannotRun: another job is active.
    """
    candidate, topic = session.candidate, session.options.topics.requests
    topic_id = session.watch.found.topic_ids.get(topic)
    known, planned = checkpoint.starts(), checkpoint.planned(topic)
    replay_until = _replay_until(session, topic_id, known, planned.read_until)
    if any(offset > planned.read_until.get(partition, 0) for partition, offset in replay_until.items()):
        # They come from announcements and from the journal, which name what they like.
        with admin_client(session.options.librdkafka_config) as admin:
            replay_until = within_log(replay_until, end_offsets(admin, topic, partitions.requests))
    planners = [one for one in known if one.epoch < candidate.epoch] if after_rival else known
    keyed = keyed_partitions([*known, *candidate.starts(topic_id)], partitions)
    start = Start(
        started_at=max(time.time_ns() // 1_000_000, known[-1].started_at + 1 if known else 0),
        last_batch_time=planned.time,
        open_batch_time=0 if planned.is_complete else planned.time,
        open_batch_epoch=epoch_of_batch(planners, planned.time),
        release=version("spark-group-coordinator"),
        config=msgspec.structs.replace(config, job_epoch=candidate.next_epoch()),
        response_partitions=partitions.responses,
        journal_partitions=keyed.journal,
        directory_partitions=keyed.directory,
        read_until=planned.read_until,
        replay_until=replay_until,
        replay_until_time=candidate.reach_before.batch_time,
        copied_epoch=copied_epoch(known),
        key_ids=senders.keys.ids(),
        group_acls=senders.acls,
    )
    if not start.replays:
        start = msgspec.structs.replace(start, replay_until={}, replay_until_time=0, copied_epoch=0)
    else:
        with admin_client(session.options.librdkafka_config) as admin:
            first = first_offsets(admin, topic, replay_until)
        count = count_replayed(planned.read_until, replay_until, first)
        report(
            f"checkpoint {session.options.checkpoint} is older than the last active job: replaying "
            f"{counted(count, 'request')} that it has answered since, with their original times"
        )
    # Before it is recorded: in the checkpoint of a job that has overtaken this one, it would pass for one of that job.
    candidate.announce_start(topic_id, start)
    checkpoint.record_start(start)
    if start.replays:
        # A start in the middle of the replay finds them in the checkpoint.
        epochs = {one.epoch for one in known}
        announced = candidate.starts(topic_id)
        lost = [one for one in announced if start.copied_epoch < one.epoch < start.epoch and one.epoch not in epochs]
        for one in lost:
            checkpoint.record_start(one)
        known = sorted([*known, *lost], key=lambda one: one.epoch)
    return (*(known if start.replays else needed_starts(known, start)), start)


def keyed_partitions(known: Sequence[Start], now: Partitions) -> Partitions:
    """The partitions in which keys lie: those that the topics had at first, unless they have fewer now."""
    first = next((one for one in known if one.journal_partitions and one.directory_partitions), None)
    if first is None:
        return now
    return replace(
        now,
        journal=min(now.journal, first.journal_partitions),
        directory=min(now.directory, first.directory_partitions),
    )


def needed_starts(known: Sequence[Start], start: Start) -> list[Start]:
    """The earlier starts that the workers need: that of an open batch, the last, and one for a clock that went back.

    All of them would go to the workers with every batch. That of an open batch may be far back: a batch that is killed
    whenever it runs again stays open over many starts. If that start was replaying, its batch needs those before it.
    """
    last = list(known[-2:])
    planners = [one for one in known if start.open_batch_time and one.epoch == start.open_batch_epoch]
    if any(planner.replays for planner in planners):
        return list(known)
    return [one for one in planners[-1:] if one not in last] + last


class QueryReach:
    """How far a query has read the topic of requests with this id, by its last complete batch."""

    def __init__(self, query: StreamingQuery, topic_id: str | None) -> None:
        self._query = query
        self._topic_id = topic_id
        self._last_batch = -1
        self._reach: Reach | None = None

    def __call__(self) -> Reach | None:
        """None before the first complete batch; the last known one when the JVM has ended."""
        with suppress(*JVM_IS_GONE):
            text = newest_progress_after(self._query, self._last_batch)
            if text is not None:
                progress = msgspec.json.decode(text, type=Progress)
                self._last_batch = progress.batch_id
                if progress.read_until and progress.timestamp is not None:
                    time_ms = round(progress.timestamp.timestamp() * 1000)
                    self._reach = Reach(self._topic_id, progress.read_until, time_ms)
        return self._reach


def epoch_of_batch(known: Sequence[Start], batch_time: int) -> int:
    """The epoch of the start that has planned the newest batch, which may be that before the last start or before."""
    last = known[-1] if known else NO_START
    return last.open_batch_epoch if last.last_batch_time == batch_time else last.epoch


def _replay_until(
    session: JobSession, topic_id: str | None, known: Sequence[Start], read_until: dict[int, int]
) -> dict[int, int]:
    """The first request that no job has read, by partition, as far as it was announced or is in the journal.

    Raises BrokersFailed.
    """
    if known and known[-1].epoch >= session.candidate.epoch:
        # This job's own start: nobody else has read anything since.
        return later(read_until, known[-1].replay_until)
    reach = session.candidate.reach_before
    if reach.topic_id is None or reach.topic_id != topic_id:
        return read_until
    if session.candidate.overtaken is None:
        # The last job has stopped, and has announced its last batch.
        return later(read_until, reach.read_until)
    since = reach.batch_time - JOURNAL_MARGIN_MS
    try:
        in_journal = _requests_in_journal(session.options.librdkafka_config, session.options.topics.journal, since)
    except CoordinatorError as failure:
        raise BrokersFailed(failure.message) from failure
    return later(later(read_until, reach.read_until), in_journal)


def _requests_in_journal(config: LibrdkafkaConfig, topic: str, since: int) -> dict[int, int]:
    """The offset after the last request that has an entry since then (ms since the epoch of Unix), by partition.

    An entry of a timer does not tell what its batch had read. With its time as the end of the replay, the initial
    delays of other groups would end before joins that the same batch may have read in time; and a session would not
    end, because that needs the deadline check, which has no entry.
    """
    found: dict[int, int] = {}
    for entry in journal_entries(config, topic, LIMIT_SECONDS, since, CLIENT_ID):
        if entry is not None and isinstance(entry.cause, RequestCause):
            cause = entry.cause
            found[cause.partition] = max(found.get(cause.partition, 0), cause.offset + 1)
    return found
