"""A process that holds the lease until it loses it: ``python -m tests.job.election.paused_job SERVERS TOPIC``."""

import sys
import threading

from streaming.job.election.announcements import AnnouncementWatch
from streaming.job.election.lease import Lease
from tests.job.election.jobs import TRANSACTIONAL_ID, job
from tests.support.waiting import LIMIT_SECONDS


def main(bootstrap_servers: str, topic: str) -> None:
    lost = threading.Event()
    lease = Lease(bootstrap_servers, {}, topic, TRANSACTIONAL_ID + topic, LIMIT_SECONDS)
    with AnnouncementWatch(bootstrap_servers, "paused", {}, topic, LIMIT_SECONDS) as watch:
        watch.look()
        print("epoch", lease.acquire(watch, job("paused")), flush=True)
    lease.keep(lambda _: lost.set())
    lost.wait()
    print("lost", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
