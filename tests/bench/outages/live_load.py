"""What the measurements of outages share: the job's options, groups, and members that send heartbeats all the time."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.bench.events import Events, PreparedRequest
from tests.bench.latency import Timings, schedule
from tests.bench.scenarios.loads import group_names
from tests.support.waiting import LIMIT_SECONDS, wait_until

RATE = 500.0
"""Heartbeats per second."""

SESSION_MS = 60_000
LIVE_GROUPS, MEMBERS_A_GROUP = 50, 4

OPTIONS = {
    "driver-memory": "1g",
    "profile": "latency",
    "request-partitions": 1,
    "response-partitions": 1,
    "topic-prefix": "outage-",
}


def form(events: Events, groups: int) -> list[PreparedRequest]:
    """Form groups that send nothing, and those of the live members; returns the heartbeats of these."""
    events.form_groups(group_names("idle", groups), 1)
    members = events.form_groups(group_names("live", LIVE_GROUPS), MEMBERS_A_GROUP, session_timeout_ms=SESSION_MS)
    return events.heartbeats(members)


@contextmanager
def live_load(
    events: Events, requests: Sequence[PreparedRequest], seconds: float
) -> Iterator[tuple[float, list[Timings]]]:
    """Send requests on a thread for so long, which the end of the block awaits; the timings are there then.

    Yields when the first request was due, by ``time.perf_counter``, and the list that gets the timings.
    """
    timings: list[Timings] = []
    times = schedule(RATE, seconds)
    thread = threading.Thread(target=lambda: timings.append(events.send_on_schedule(requests, times)), daemon=True)
    began = time.perf_counter()
    thread.start()
    yield began, timings
    wait_until(lambda: not thread.is_alive(), "the end of the load", seconds + LIMIT_SECONDS)
