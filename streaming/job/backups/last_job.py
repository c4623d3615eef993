"""What the jobs of some topics have announced, and whether one is active: a command must not work beside it."""

import time
from collections.abc import Callable
from typing import NamedTuple

from streaming.client.errors import TopicNotFound
from streaming.contract.errors import CannotRun
from streaming.job.backups.topic_reach import CLIENT_ID
from streaming.job.election.announcements import AnnouncementWatch, Reach
from streaming.job.election.candidate import LEASE_SECONDS
from streaming.job.group_batch.starts import Start
from streaming.job.options import JobOptions

LOOK_SECONDS = 0.1

LIMIT_SECONDS = 30.0
"""Looks that wait for the brokers do not tell whether a job is silent: with slow brokers there is no end of them."""

NOT_CHECKED = "without the brokers, it is not known whether a job is active for these topics: -b checks it"


class LastJob(NamedTuple):
    """How far jobs have announced to have read the requests, and their starts.

    If ``is_of_other_topic``, the requests topic was created again since the last job read it. ``epoch`` is the newest
    that was announced, whatever the topic; 0 if no job is known.
    """

    reach: Reach
    starts: list[Start]
    is_of_other_topic: bool = False
    epoch: int = 0


def find_last_job(options: JobOptions, topic_id: str | None, timeout: float) -> LastJob:
    """What jobs have announced for the requests topic with this id. ``timeout`` is that of each look, in seconds.

    Raises:
        CannotRun: a job is active, or it is not known.
        CoordinatorError: the announcements cannot be read.
    """
    topic = options.topics.coordinators
    config = options.librdkafka_config
    try:
        watching = AnnouncementWatch(str(config["bootstrap.servers"]), CLIENT_ID, config, topic, timeout)
    except TopicNotFound:
        return LastJob(Reach(), [])
    with watching as watch:
        await_silence(watch.look, lambda: watch.is_free(LEASE_SECONDS), lambda: watch.silent_seconds)
        reach, epoch = (Reach(), 0) if watch.newest is None else (watch.newest.reach, watch.newest.epoch)
        is_other = topic_id is not None and reach.topic_id not in (None, topic_id)
        return LastJob(reach if reach.topic_id == topic_id else Reach(), watch.starts(topic_id), is_other, epoch)


def require_no_job(options: JobOptions, timeout: float | None, report: Callable[[str], None]) -> LastJob | None:
    """Check that no job is active for these topics; returns what the last one has announced.

    Without a ``timeout`` the brokers are not asked, and nothing is known: None. Raises as :func:`find_last_job`.
    """
    if timeout is None:
        report(f"warning: {NOT_CHECKED}")
        return None
    return find_last_job(options, None, timeout)


def await_silence(
    look: Callable[[], None],
    is_free: Callable[[], bool],
    silent_seconds: Callable[[], float],
    limit_seconds: float = LIMIT_SECONDS,
) -> None:
    """Look until no job is active; the functions are those of an :class:`AnnouncementWatch`.

    Raises:
        CannotRun: a job is active, or the looks take so long that they do not tell.
    """
    began = time.monotonic()
    look()
    while not is_free():
        waited = time.monotonic() - began
        if silent_seconds() == 0.0 and waited > 2 * LEASE_SECONDS:
            raise CannotRun("a job is active for these topics: stop it first")
        if waited > limit_seconds:
            raise CannotRun("the brokers are too slow to tell whether a job is active for these topics")
        time.sleep(LOOK_SECONDS)
        look()
