"""Several jobs, one of which is active: on a real broker, without Spark."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer

from streaming.client.errors import CoordinatorError
from streaming.embedded.broker import EmbeddedBroker
from streaming.job.election import lease as lease_module
from streaming.job.election.announcements import ANNOUNCEMENT_SECONDS, AnnouncementWatch
from streaming.job.election.candidate import LEASE_SECONDS, candidate
from streaming.job.election.lease import Lease, Overtaken
from tests.job.election.jobs import TRANSACTIONAL_ID, job
from tests.support.processes import Process
from tests.support.relay.dropping_relay import END_TRANSACTION, INIT_PRODUCER_ID, relayed_broker
from tests.support.topics import create_topic, unique
from tests.support.waiting import LIMIT_SECONDS, wait_until

NewWatch = Callable[[], AnnouncementWatch]
NewLease = Callable[[], Lease]


@pytest.fixture
def topic(broker: EmbeddedBroker) -> str:
    name = unique("active")
    create_topic(broker.bootstrap_servers, name, 1, {"cleanup.policy": "compact"})
    return name


@pytest.fixture
def new_watch(broker: EmbeddedBroker, topic: str) -> Iterator[NewWatch]:
    with ExitStack() as stack:

        def make() -> AnnouncementWatch:
            watch = AnnouncementWatch(broker.bootstrap_servers, "watch", {}, topic, LIMIT_SECONDS)
            stack.enter_context(watch)
            watch.look()
            return watch

        yield make


@pytest.fixture
def new_lease(broker: EmbeddedBroker, topic: str) -> Iterator[NewLease]:
    with ExitStack() as stack:

        def make() -> Lease:
            lease = Lease(broker.bootstrap_servers, {}, topic, TRANSACTIONAL_ID + topic, LIMIT_SECONDS)
            stack.callback(lease.end)
            return lease

        yield make


def wait_until_free(watch: AnnouncementWatch) -> None:
    def is_free() -> bool:
        watch.look()
        return watch.is_free(LEASE_SECONDS)

    wait_until(is_free, "no job is active", pause=ANNOUNCEMENT_SECONDS / 2)


def test_the_first_job_is_active_at_once_and_says_where_it_runs(new_watch: NewWatch, new_lease: NewLease) -> None:
    watch = new_watch()
    assert watch.is_free(LEASE_SECONDS)
    assert new_lease().acquire(watch, job("first")) == 1
    other = new_watch()
    assert not other.is_free(LEASE_SECONDS)
    assert other.newest is not None
    assert (other.newest.host, other.newest.epoch) == ("first", 1)


def test_a_job_that_announces_itself_stays_active(new_watch: NewWatch, new_lease: NewLease) -> None:
    lease, watch = new_lease(), new_watch()
    lease.acquire(watch, job("first"))
    lost: list[Overtaken] = []
    lease.keep(lost.append)
    looks = 0

    def has_looked_for_long() -> bool:
        nonlocal looks
        looks += 1
        watch.look()
        assert watch.silent_seconds < LEASE_SECONDS
        return looks * ANNOUNCEMENT_SECONDS > 2 * LEASE_SECONDS

    wait_until(has_looked_for_long, "twice the lease has passed", pause=ANNOUNCEMENT_SECONDS)
    assert not lost


def test_after_silence_another_job_is_active_and_the_former_learns_it(new_watch: NewWatch, new_lease: NewLease) -> None:
    former, watch, lost = new_lease(), new_watch(), threading.Event()
    former.acquire(watch, job("former"))
    wait_until_free(watch)
    assert new_lease().acquire(watch, job("next")) == 2
    former.keep(lambda _: lost.set())
    assert lost.wait(LIMIT_SECONDS)
    watch.look()
    assert watch.newest is not None
    assert watch.newest.host == "next"


def test_a_paused_job_has_lost_the_lease_when_it_goes_on(
    broker: EmbeddedBroker, topic: str, new_watch: NewWatch, new_lease: NewLease
) -> None:
    command = [sys.executable, "-m", "tests.job.election.paused_job", broker.bootstrap_servers, topic]
    paused = Process("paused", command)
    paused.start()
    try:
        paused.await_line("the epoch", lambda line: line == "epoch 1")
        paused.signal(signal.SIGSTOP)
        watch = new_watch()
        wait_until_free(watch)
        assert new_lease().acquire(watch, job("next")) == 2
        paused.signal(signal.SIGCONT)
        paused.await_line("the loss", lambda line: line == "lost")
    finally:
        paused.kill()
    watch.look()
    assert watch.newest is not None
    assert watch.newest.host == "next"


def test_the_place_of_a_killed_job_is_free_at_once_for_a_job_on_the_same_host(
    broker: EmbeddedBroker, topic: str
) -> None:
    command = [sys.executable, "-m", "tests.job.election.paused_job", broker.bootstrap_servers, topic]
    active = Process("active", command)
    active.start()
    try:
        active.await_line("the epoch", lambda line: line == "epoch 1")
        with candidate({"bootstrap.servers": broker.bootstrap_servers}, topic) as rival:
            assert not rival.is_free()
            active.kill()
            assert rival.is_free()
            assert rival.become_active()
            assert rival.epoch == 2
    finally:
        active.kill()


def test_a_released_lease_is_free_at_once(new_watch: NewWatch, new_lease: NewLease) -> None:
    former, watch = new_lease(), new_watch()
    former.acquire(watch, job("former"))
    former.keep(lambda _: None)
    former.release()
    watch.look()
    assert watch.is_free(LEASE_SECONDS)
    assert watch.silent_seconds == 0
    assert new_lease().acquire(watch, job("next")) == 2


def test_a_watch_that_waits_hears_of_a_release_before_it_has_waited_to_the_end(
    new_watch: NewWatch, new_lease: NewLease
) -> None:
    former, watch = new_lease(), new_watch()
    former.acquire(watch, job("former"))
    watch.look()
    release = threading.Timer(0.2, former.release)
    release.start()
    began = time.monotonic()
    while not watch.is_free(LEASE_SECONDS):
        assert time.monotonic() - began < LIMIT_SECONDS
        watch.wait(LIMIT_SECONDS)
        watch.look()
    release.join()
    assert watch.newest is not None
    assert watch.newest.is_released


def test_a_job_that_ends_without_a_release_has_not_said_how_far_it_has_read(
    broker: EmbeddedBroker, topic: str, new_watch: NewWatch
) -> None:
    with candidate({"bootstrap.servers": broker.bootstrap_servers}, topic) as refused:
        refused.require_free()
        assert refused.become_active()
    watch = new_watch()
    wait_until_free(watch)
    assert watch.newest is not None
    assert not watch.newest.is_released


def test_of_jobs_that_acquire_the_lease_together_one_is_active(new_watch: NewWatch, new_lease: NewLease) -> None:
    contenders = [(new_lease(), new_watch()) for _ in range(4)]
    epochs: list[int] = []

    def contend(lease: Lease, watch: AnnouncementWatch) -> None:
        try:
            epochs.append(lease.acquire(watch, job("contender")))
            lease.keep(lambda _: None)
        except Overtaken:
            pass

    threads = [threading.Thread(target=contend, args=each) for each in contenders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_SECONDS)
    # One may have announced itself before the next took the lease from it; no two have the same epoch.
    assert sorted(epochs) == list(range(1, len(epochs) + 1))
    last = new_watch()
    assert last.newest is not None
    assert last.newest.epoch == len(epochs)


def test_a_candidate_that_was_not_quick_enough_can_acquire_the_lease_later(
    new_watch: NewWatch, new_lease: NewLease
) -> None:
    slow, slow_watch = new_lease(), new_watch()
    quick = new_lease()
    assert quick.acquire(new_watch(), job("quick")) == 1
    with pytest.raises(Overtaken):
        slow.acquire(slow_watch, job("slow"))
    quick.keep(lambda _: None)
    quick.release()
    slow_watch.look()
    assert slow.acquire(slow_watch, job("slow")) == 2


def test_a_job_whose_announcement_was_fenced_goes_on_while_no_other_one_has_announced_itself(
    broker: EmbeddedBroker, topic: str, new_watch: NewWatch, new_lease: NewLease
) -> None:
    lease, watch, lost = new_lease(), new_watch(), threading.Event()
    lease.acquire(watch, job("first"))
    # As a broker does with a producer whose transaction was open for too long, and as a candidate that then hangs does.
    fencing = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": TRANSACTIONAL_ID + topic, "log_level": 0}
    )
    fencing.init_transactions(LIMIT_SECONDS)
    watch.look()
    lease.keep(lambda _: lost.set())

    def is_announced() -> bool:
        watch.look()
        return watch.silent_seconds == 0

    assert not is_announced()
    wait_until(is_announced, "the job is announced again", pause=ANNOUNCEMENT_SECONDS / 2)
    assert not lost.is_set()
    fencing.begin_transaction()
    fencing.produce(topic, b"late")
    with pytest.raises(KafkaException):
        fencing.commit_transaction(LIMIT_SECONDS)


@pytest.mark.jvm
def test_an_outage_of_the_broker_is_not_taken_for_silence(tmp_path: Path) -> None:
    with EmbeddedBroker(data_dir=tmp_path) as broker:
        topic, servers = unique("active"), broker.bootstrap_servers
        create_topic(servers, topic)
        lease = Lease(servers, {}, topic, TRANSACTIONAL_ID + topic, LIMIT_SECONDS)
        lost: list[Overtaken] = []
        with AnnouncementWatch(servers, "watch", {}, topic, 4 * ANNOUNCEMENT_SECONDS) as watch:
            watch.look()
            lease.acquire(watch, job("first"))
            lease.keep(lost.append)

            def is_announced() -> bool:
                watch.look()
                return watch.newest is not None

            wait_until(is_announced, "the job is announced")
            broker.stop()
            failures = 0

            def has_failed_for_long() -> bool:
                nonlocal failures
                try:
                    watch.look()
                except CoordinatorError:
                    failures += 1
                return failures >= 3

            wait_until(has_failed_for_long, "no look succeeds")
            assert not watch.is_free(LEASE_SECONDS)
            broker.restart()
            before = watch.newest

            def announces_again() -> bool:
                watch.look()
                assert not watch.is_free(LEASE_SECONDS)
                return watch.silent_seconds == 0

            wait_until(announces_again, "the job is announced again", ignore=(CoordinatorError,))
            assert watch.newest == before
        lease.release()
        assert not lost


@pytest.mark.jvm
def test_a_job_whose_announcement_does_not_end_goes_on_with_another_producer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_module, "TRANSACTION_LIMIT_MS", 2_000)
    with relayed_broker() as (broker, relay, address), ExitStack() as stack:
        topic = unique("active")
        create_topic(broker.bootstrap_servers, topic)
        watch = stack.enter_context(AnnouncementWatch(address, "watch", {}, topic, LIMIT_SECONDS))
        watch.look()
        lease = Lease(address, {}, topic, TRANSACTIONAL_ID + topic, 1.0)
        stack.callback(lease.end)
        lost: list[Overtaken] = []
        # The broker has yet to load its transactions.
        wait_until(lambda: lease.acquire(watch, job("first")), "the lease acquired", ignore=(CoordinatorError,))
        relay.drop(END_TRANSACTION, until=INIT_PRODUCER_ID)
        lease.keep(lost.append)
        wait_until(lambda: relay.dropped, "an announcement that does not end")

        before = lease.announced_at
        wait_until(lambda: lease.announced_at > before, "the job is announced again", pause=ANNOUNCEMENT_SECONDS / 2)
        watch.look()
        assert watch.silent_seconds == 0
        assert not lost
