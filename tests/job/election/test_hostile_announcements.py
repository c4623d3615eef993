"""Records that others write to the topic of announcements: no watch, no candidate and no command ends of them."""

import json
import logging
from collections.abc import Iterator

import msgspec
import pytest

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.messages import LARGEST_EPOCH
from streaming.client.announced_epoch import KEY
from streaming.client.errors import CoordinatorNotAvailable
from streaming.embedded.broker import EmbeddedBroker
from streaming.job.election.announcements import ActiveJob, AnnouncedStart, AnnouncementWatch, Reach, start_key
from streaming.job.election.candidate import candidate
from streaming.job.election.lease import Lease
from streaming.job.group_batch.starts import Start
from tests.job.election.jobs import TRANSACTIONAL_ID, job
from tests.support.kafka_io import append
from tests.support.topics import create_topic, unique
from tests.support.waiting import LIMIT_SECONDS

encode = msgspec.json.encode


def start(epoch: int) -> bytes:
    return encode(AnnouncedStart("topic", Start(started_at=1_000 * epoch, config=CoordinatorConfig(job_epoch=epoch))))


def active(**changes: object) -> bytes:
    return json.dumps({**json.loads(encode(job("rival"))), **changes}).encode()


HOSTILE = {
    "a start that is garbage": (start_key(99), b"garbage"),
    "a start under the key of another one": (start_key(99), start(7)),
    "a start with no number": (b"start-x", start(7)),
    "a start with an epoch that no job reaches": (
        start_key(2**60),
        start(1).replace(b'"job.epoch":1', b'"job.epoch":%d' % 2**60),
    ),
    "a start that is nested deeply": (start_key(99), b'{"topicId":' + b"[" * 100_000),
    "an announcement that is garbage": (KEY, b"garbage"),
    "an announcement that is nested deeply": (KEY, b'{"x":' + b"[" * 100_000),
    "an announcement with an epoch that no job reaches": (KEY, active(epoch=2**60)),
    "an announcement of a negative epoch": (KEY, active(epoch=-1)),
    "an announcement of a time without a date": (KEY, active(startedAt=2**60)),
    "an announcement of no process": (KEY, active(processId=-1)),
    "an announcement of an offset before the first": (KEY, active(reach={"topicId": "t", "readUntil": {"0": -5}})),
    "an announcement with the longest name": (KEY, active(host="h" * 100_000)),
}


@pytest.fixture(scope="module")
def servers(broker: EmbeddedBroker) -> str:
    return broker.bootstrap_servers


@pytest.fixture
def topic(servers: str) -> str:
    name = unique("active")
    create_topic(servers, name, 1, {"cleanup.policy": "compact"})
    return name


@pytest.fixture
def watch(servers: str, topic: str) -> Iterator[AnnouncementWatch]:
    with AnnouncementWatch(servers, "watch", {}, topic, LIMIT_SECONDS) as watching:
        yield watching


@pytest.mark.parametrize("name", HOSTILE)
def test_the_record_of_another_writer_changes_nothing_that_is_known(
    servers: str, topic: str, watch: AnnouncementWatch, name: str
) -> None:
    append(servers, topic, (KEY, encode(job("honest"))), (start_key(1), start(1)), HOSTILE[name])
    watch.look()
    assert watch.newest == job("honest")
    assert [one.epoch for one in watch.starts("topic")] == [1]


def test_with_them_all_a_job_becomes_active_and_the_log_has_one_line_of_each_kind(
    servers: str, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    append(servers, topic, *HOSTILE.values(), *HOSTILE.values())
    with caplog.at_level(logging.WARNING):
        for epoch in (1, 2):
            with candidate({"bootstrap.servers": servers}, topic) as rival:
                rival.require_free()
                assert rival.become_active()
                assert rival.epoch == epoch
                rival.release()
    assert len([record for record in caplog.records if "is skipped" in record.getMessage()]) == 2


def test_an_announced_process_that_is_none_has_not_ended(servers: str, topic: str) -> None:
    identity = job("here").process
    assert identity is not None
    namespace = identity.rsplit("/", 2)[0]
    append(servers, topic, (KEY, active(process=f"{namespace}/-1/x")))
    with candidate({"bootstrap.servers": servers}, topic) as rival:
        rival.is_free()
        append(servers, topic, (KEY, active(process=f"{namespace}/-1/x")))
        assert not rival.is_free()


def test_behind_the_largest_epoch_no_job_announces_itself_unheard(
    servers: str, topic: str, watch: AnnouncementWatch
) -> None:
    append(servers, topic, (KEY, active(epoch=LARGEST_EPOCH, isReleased=True)))
    watch.look()
    lease = Lease(servers, {}, topic, TRANSACTIONAL_ID + topic, LIMIT_SECONDS)
    with pytest.raises(CoordinatorNotAvailable, match="has the largest epoch there can be"):
        lease.acquire(watch, job("next"))


def test_every_honest_announcement_can_be_read() -> None:
    largest = ActiveJob(
        epoch=LARGEST_EPOCH,
        host="h" * 253,
        process_id=2**22,
        started_at=2**42,
        version="0.1.0",
        process="boot/4026531836/4194304/18446744073709551615",
        reach=Reach("topic", {0: 2**62}, 2**42),
    )
    assert msgspec.json.decode(encode(largest), type=ActiveJob) == largest
