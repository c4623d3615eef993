"""Commands after a disaster: the job was killed at work, or its announcements are gone. Each test has a job of its own.

What the killed job had acknowledged is there, and what it had not answered is answered by the next one.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from streaming.embedded.broker import EmbeddedBroker
from streaming.job.backups.epochs import newest_epoch_in, newest_epoch_of
from streaming.job.backups.manifest import CHECKPOINT
from streaming.journal.reader import journal_entries
from tests.job.backups.life import AFTER, UNANSWERED, Life, check_served, commit, commit_of, live, run
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.waiting import LIMIT_SECONDS, wait_until


@pytest.fixture
def life(broker: EmbeddedBroker, tmp_path: Path) -> Iterator[Life]:
    with CoordinatorProcess(broker.bootstrap_servers, tmp_path, {"request-partitions": 2}) as coordinator:
        yield Life(coordinator, tmp_path)


@pytest.mark.long
def test_a_restore_after_a_kill_loses_nothing(life: Life) -> None:
    live(life, is_killed=True)
    place = life.folder / "restored"
    lines = run("restore", life.backup, place, *life.topics)
    assert any("still has every request since the backup" in line for line in lines)
    check_served(life, place, *UNANSWERED)
    assert run("verify", place, *life.topics)[-1] == "no difference"


@pytest.mark.parametrize(
    "has_backup", [pytest.param(False, id="journal", marks=pytest.mark.long), pytest.param(True, id="backup")]
)
def test_a_rebuild_after_a_kill_loses_nothing(life: Life, has_backup: bool) -> None:
    live(life, is_killed=True)
    place = life.folder / "rebuilt"
    base = ("--backup", life.backup) if has_backup else ()
    # The directory may have an entry of the last batch whose entries in the journal are missing.
    run("rebuild", place, *base, *life.topics, "--yes")
    check_served(life, place, *UNANSWERED)
    assert run("verify", place, *life.topics)[-1] == "no difference"


@pytest.mark.long
def test_without_the_announcements_a_restored_job_has_a_higher_epoch_than_all_before(life: Life) -> None:
    live(life)
    with life.running(life.copy("later")) as clients:
        commit(clients, AFTER, "later")
    servers, topics = life.coordinator.bootstrap_servers, life.coordinator.topics
    newest = newest_epoch_of(journal_entries({"bootstrap.servers": servers}, topics.journal, LIMIT_SECONDS))
    assert newest > newest_epoch_in(life.backup / CHECKPOINT)
    admin = AdminClient({"bootstrap.servers": servers})
    admin.delete_topics([topics.coordinators])[topics.coordinators].result(LIMIT_SECONDS)
    wait_until(lambda: topics.coordinators not in admin.list_topics(timeout=LIMIT_SECONDS).topics, "the topic is gone")
    place = life.folder / "restored"
    lines = run("restore", life.backup, place, *life.topics)
    assert f"{topics.coordinators} names no job: reading {topics.journal} for the job's epoch" in lines
    with life.running(place) as clients:
        answer = clients.ask("later", "OffsetCommit", 5, commit_of("later", AFTER))
    assert answer["jobEpoch"] > newest
