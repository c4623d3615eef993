"""A damaged checkpoint: the job refuses it with a line that says what helps, or goes on with every acknowledged commit.

One stopped job's checkpoint is copied for each case, and real queries of one session start with the copies. Where the
line names files to remove, the test removes them: then the job goes on.
"""

import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import pytest
from pyspark.sql.streaming.query import StreamingQuery

from streaming.contract.errors import CannotRun
from streaming.embedded.broker import EmbeddedBroker
from streaming.job.checkpoints.checkpoint import Checkpoint
from streaming.job.checkpoints.damage import READS_AGAIN, REPLACE, REPLACE_METADATA, damage_after_failure
from streaming.job.checkpoints.local_folder import checkpoint_location
from streaming.job.election.candidate import candidate
from streaming.job.lifecycle.activation import become_active, hand_over
from streaming.job.lifecycle.job_session import start_session
from streaming.job.lifecycle.query_start import start_query
from streaming.job.options import load_options
from streaming.job.spark_internals.batch_end import stop_after_batch
from streaming.job.state_stores import StateStore
from tests.recovery.conversation import Conversation, offsets
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.kafka_io import reading
from tests.support.parameters.long_tests import mostly_long
from tests.support.waiting import wait_until

GROUPS = ("a", "b", "c", "d")
PARTITIONS = 2
ACKNOWLEDGED = dict.fromkeys(GROUPS, 20)
SPARK = {
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": 8,
    "spark.sql.streaming.stateStore.maintenanceInterval": "200ms",
}
UNKNOWN_MEMBER: dict[str, object] = {"generationIdOrMemberEpoch": -1, "memberId": ""}


Damage = Callable[["Folder", str], None]


class Folder:
    """A checkpoint's folder, to damage. ``newest`` is the newest batch; its version of the state is one more."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.newest = max(int(file.name) for file in (path / "offsets").iterdir() if file.name.isdigit())

    def versions(self, suffix: str, partition: int = 1) -> list[str]:
        """The paths of a partition's files of the state with this suffix, oldest first."""
        found = (self.path / f"state/0/{partition}").glob(f"[0-9]*.{suffix}")
        return [f"state/0/{partition}/{file.name}" for file in sorted(found, key=lambda file: version(file.name))]

    def lose(self, *paths: str) -> None:
        for path in map(self.path.joinpath, paths):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
                self._checksum(path).unlink(missing_ok=True)

    def empty(self, path: str) -> None:
        """As after a power failure: the file's name is on the disk, its content is not."""
        (self.path / path).write_bytes(b"")

    def tear(self, path: str) -> None:
        """Cut a file in the middle. Without its checksum, only the content tells."""
        torn = self.path / path
        torn.write_bytes(torn.read_bytes()[: torn.stat().st_size // 2])
        self._checksum(torn).unlink(missing_ok=True)

    def flip(self, path: str) -> None:
        """Change one byte, which the file's checksum tells."""
        content = bytearray((self.path / path).read_bytes())
        content[len(content) // 2] ^= 1
        (self.path / path).write_bytes(content)

    def _checksum(self, path: Path) -> Path:
        return path.with_name(f".{path.name}.crc")


def version(name: str) -> int:
    """The version of a file of the state: 7.delta, 7_ID.changelog."""
    return int(name.partition(".")[0].partition("_")[0])


class Job:
    """A session whose query starts on any checkpoint, and a client of its topics."""

    def __init__(self, broker: EmbeddedBroker, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.lines: list[str] = []
        self.process = CoordinatorProcess(
            broker.bootstrap_servers, folder / "process", {**SPARK, "state-partitions": 2}
        )
        self.options = load_options(self.process.options, {})
        self.session = start_session(self.options, stack, self.lines.append)
        self._stack = stack
        become_active(self.session, self.lines.append)
        responses = stack.enter_context(reading(broker.bootstrap_servers, self.options.topics.responses))
        self.responses = responses
        self.clients = Conversation(broker.bootstrap_servers, self.options.topics, responses)
        self._stopped: dict[StateStore, Path] = {}

    @contextmanager
    def giving_way(self) -> Iterator[None]:
        """Let another job be the active one of the topics within the block."""
        hand_over(self.session)
        yield
        rival = candidate(self.options.librdkafka_config, self.options.topics.coordinators)
        self.session = self.session._replace(candidate=self._stack.enter_context(rival))
        become_active(self.session, self.lines.append)

    @contextmanager
    def query(
        self, checkpoint: Path, store: StateStore | None = None, *, is_new: bool = False
    ) -> Iterator[StreamingQuery]:
        """A query on this checkpoint; it stops after its batch in flight. Raises CannotRun if the job refuses it."""
        self.lines.clear()
        options = msgspec.structs.replace(
            self.options, checkpoint=str(checkpoint), state_store=store, new_checkpoint=is_new
        )
        found = Checkpoint(self.session.spark, checkpoint_location(options.checkpoint))
        session = self.session._replace(options=options, checkpoint=found)
        partitions = session.watch.found.partition_counts(options.topics)
        with ExitStack() as stack:
            query = start_query(session, partitions, stack, self.lines.append)
            try:
                yield query
            finally:
                # An idle query would take longer to stop.
                self.session.wakes.append()
                stop_after_batch(query)
                query.stop()

    def refusal(self, checkpoint: Path) -> str:
        """The line with which the job refuses a checkpoint, at its start or when the query has failed."""
        try:
            with self.query(checkpoint) as query:
                self.request()
                wait_until(lambda: not query.isActive, "the query's failure", describe=lambda: str(query.lastProgress))
        except CannotRun as refused:
            return str(refused)
        failure = query.exception()
        assert failure is not None
        damage = damage_after_failure(
            Checkpoint(self.session.spark, checkpoint.as_uri()), str(checkpoint), str(failure)
        )
        assert damage is not None, failure
        return damage

    def request(self) -> None:
        """Append a request."""
        self.clients.send(GROUPS[0], "OffsetFetch", 7, {"groupId": GROUPS[0]})

    def commit(self, offset: int, *groups: str) -> None:
        """Commit this offset in these groups; each is acknowledged."""
        bodies = [{"groupId": group, **UNKNOWN_MEMBER, "topics": offsets(offset)} for group in groups]
        sent = [self.clients.send(str(body["groupId"]), "OffsetCommit", 5, body) for body in bodies]
        assert [self.clients.response(each)["errorCode"] for each in sent] == [0] * len(groups)

    def committed(self, query: StreamingQuery, *groups: str) -> dict[str, int | None]:
        """The offset that each of these groups has committed."""
        sent = {group: self.clients.send(group, "OffsetFetch", 7, {"groupId": group}) for group in groups}
        wanted = {correlation_id.encode() for correlation_id in sent.values()}
        wait_until(
            lambda: not query.isActive or wanted <= {record.key for record in self.responses.poll()},
            "the groups' offsets",
        )
        assert query.isActive, query.exception()
        bodies = {group: self.clients.response(correlation_id)["body"] for group, correlation_id in sent.items()}
        return {
            group: next((each["committedOffset"] for topic in body["topics"] for each in topic["partitions"]), None)
            for group, body in bodies.items()
        }

    def stopped(self, store: StateStore) -> Path:
        """The checkpoint of a query that has stopped, with a snapshot and deltas after it in each state partition."""
        if store not in self._stopped:
            base, self._stopped[store] = self.folder / store, self.folder / f"{store}-stopped"
            with self.query(base, store, is_new=True) as query:
                self.commit(20, *GROUPS)

                def has_snapshots(query: StreamingQuery = query) -> bool:
                    self.session.wakes.append()
                    return not query.isActive or needs_snapshots_and_changes(base)

                wait_until(has_snapshots, "snapshots", pause=0.02)
            shutil.copytree(base, self._stopped[store])
        return self._stopped[store]


def needs_snapshots_and_changes(checkpoint: Path) -> bool:
    """Whether the newest version of each state partition has a snapshot two to four versions earlier.

    Then the batches until the query has stopped make no further snapshot.
    """
    folder, distances = Folder(checkpoint), []
    for partition in range(PARTITIONS):
        snapshots = [*folder.versions("snapshot", partition), *folder.versions("zip", partition)]
        changes = [*folder.versions("delta", partition), *folder.versions("changelog", partition)]
        if not snapshots or not changes:
            return False
        distances.append(version(Path(changes[-1]).name) - version(Path(snapshots[-1]).name))
    return all(2 <= distance <= 4 for distance in distances)


@pytest.fixture(scope="module")
def job(broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    with ExitStack() as stack:
        yield Job(broker, tmp_path_factory.mktemp("damage"), stack)


@pytest.fixture
def memory(job: Job, tmp_path: Path) -> Folder:
    """A copy of the stopped job's checkpoint with the memory store."""
    return Folder(Path(shutil.copytree(job.stopped("memory"), tmp_path / "checkpoint")))


@pytest.fixture
def damaged(job: Job, store: StateStore, tmp_path: Path) -> Folder:
    """A copy of the stopped job's checkpoint with this store."""
    return Folder(Path(shutil.copytree(job.stopped(store), tmp_path / "checkpoint")))


def assert_goes_on(job: Job, folder: Folder) -> None:
    """All acknowledged commits are there, and so is a new one after one more start."""
    # Every case reads what others have appended: a commit in the same groups would hide a loss.
    later = uuid.uuid4().hex
    with job.query(folder.path) as query:
        assert job.committed(query, *GROUPS) == ACKNOWLEDGED
        job.commit(30, later)
    with job.query(folder.path) as query:
        assert job.committed(query, *GROUPS, later) == {**ACKNOWLEDGED, later: 30}


def assert_goes_on_without(job: Job, folder: Folder, *paths: str) -> None:
    """Remove these files as an operator does, who does not know of their checksums; then the job goes on."""
    for path in paths:
        (folder.path / path).unlink()
    assert_goes_on(job, folder)


def refused(job: Job, folder: Folder, file: str, problem: str, advice: str = REPLACE) -> str:
    """Assert that the job refuses the checkpoint with this line, as a regular expression; returns the advice."""
    line = job.refusal(folder.path)
    expected = (
        rf"checkpoint {re.escape(str(folder.path))} is damaged: {re.escape(file)} (?:{problem}): {re.escape(advice)}"
    )
    assert re.fullmatch(expected, line), line
    return advice


def remove(*paths: str) -> str:
    """The advice to remove these files, with which the job goes back by some batches if they are of batches."""
    return f"remove {', '.join(paths)}" + (READS_AGAIN if "/".join(paths).startswith(("offsets", "commits")) else "")


def test_files_that_the_next_batch_does_not_need_may_be_damaged(job: Job, memory: Folder) -> None:
    older = memory.newest - 2
    memory.tear(f"offsets/{older}")
    memory.empty(f"commits/{older}")
    memory.lose(f"commits/{older + 1}", "state/0/_metadata", "state/0/0/_metadata/schema")
    memory.empty("sources/0/0")
    memory.empty(memory.versions("delta")[0])
    assert_goes_on(job, memory)
    assert job.lines == [f"loading groups from checkpoint {memory.path}"]


@pytest.mark.parametrize(
    "damage",
    mostly_long([Folder.lose, Folder.empty, Folder.tear], [Folder.empty]),
    ids=lambda damage: str(damage.__name__),
)
def test_in_place_of_a_snapshot_spark_takes_the_deltas(job: Job, memory: Folder, damage: Damage) -> None:
    damage(memory, memory.versions("snapshot")[-1])
    with job.query(memory.path) as query:
        assert job.committed(query, *GROUPS) == ACKNOWLEDGED


@pytest.mark.parametrize("store", mostly_long(["memory", "rocksdb"], ["memory"]))
def test_without_the_newest_commit_its_batch_runs_again(job: Job, damaged: Folder) -> None:
    damaged.lose(f"commits/{damaged.newest}")
    assert_goes_on(job, damaged)


def test_lost_folders_of_the_job_are_reported(job: Job, memory: Folder) -> None:
    memory.lose("starts", "requests-topic")
    with job.query(memory.path) as query:
        assert job.committed(query, *GROUPS) == ACKNOWLEDGED
    _, adopted, starts = job.lines
    assert adopted.startswith(f"warning: checkpoint {memory.path} has no folder requests-topic: it adopts ")
    assert starts.startswith(f"warning: checkpoint {memory.path} has lost its folder starts ")


@pytest.mark.parametrize("store", mostly_long(["memory", "rocksdb"], ["memory"]))
@pytest.mark.parametrize(
    ("damage", "problem"),
    [(Folder.empty, ".*"), (Folder.tear, ".*"), (Folder.flip, "Checksum error: .*")],
    ids=["empty", "torn", "flipped"],
)
def test_a_damaged_newest_commit_can_be_removed(job: Job, damaged: Folder, damage: Damage, problem: str) -> None:
    newest = f"commits/{damaged.newest}"
    damage(damaged, newest)
    refused(job, damaged, newest, f"is not a batch that Spark has completed: {problem}", remove(newest))
    assert_goes_on_without(job, damaged, newest)


@pytest.mark.parametrize("store", mostly_long(["memory", "rocksdb"], ["memory"]))
def test_without_the_newest_plan_the_job_can_go_back_by_one_batch(job: Job, damaged: Folder) -> None:
    plan, commit = f"offsets/{damaged.newest}", f"commits/{damaged.newest}"
    damaged.lose(plan)
    refused(job, damaged, plan, "is lost, but commits has this batch", remove(commit))
    assert_goes_on_without(job, damaged, commit)


@pytest.mark.parametrize(
    ("damage", "problem"),
    [(Folder.empty, "it is empty, .*"), (Folder.tear, ".*"), (Folder.flip, "Checksum error: .*")],
    ids=["empty", "torn", "flipped"],
)
def test_a_damaged_newest_plan_can_be_removed(job: Job, memory: Folder, damage: Damage, problem: str) -> None:
    plan, commit = f"offsets/{memory.newest}", f"commits/{memory.newest}"
    damage(memory, plan)
    refused(job, memory, plan, f"is not a batch that Spark has planned: {problem}", remove(plan, commit))
    assert_goes_on_without(job, memory, plan, commit)


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (Folder.lose, "is lost"),
        (Folder.empty, "is not a batch that Spark has planned: .*"),
        (Folder.tear, "is not a batch that Spark has planned: .*"),
    ],
    ids=["lost", "empty", "torn"],
)
def test_the_plan_before_the_newest_is_needed(job: Job, memory: Folder, damage: Damage, problem: str) -> None:
    plan = f"offsets/{memory.newest - 1}"
    damage(memory, plan)
    refused(job, memory, plan, problem)


@pytest.mark.parametrize("lost", [("offsets",), ("offsets", "commits"), ("offsets", "state")], ids=" and ".join)
def test_a_checkpoint_without_plans_is_not_taken_for_a_new_one(job: Job, memory: Folder, lost: list[str]) -> None:
    memory.lose(*lost)
    refused(job, memory, "offsets", "is lost or empty, but the checkpoint has batches in its other folders")
    assert job.lines == []
    assert not (memory.path / "offsets").exists()


@pytest.mark.parametrize(
    "damage", mostly_long([Folder.lose, Folder.empty, Folder.tear], [Folder.empty]), ids=["lost", "empty", "torn"]
)
def test_the_metadata_can_be_written_again(job: Job, memory: Folder, damage: Damage) -> None:
    damage(memory, "metadata")
    refused(job, memory, "metadata", "is lost|cannot be read: .*", REPLACE_METADATA)
    for name in ("metadata", ".metadata.crc"):
        (memory.path / name).unlink(missing_ok=True)
    (memory.path / "metadata").write_text(f'{{"id":"{uuid.uuid4()}"}}')
    assert_goes_on(job, memory)


@pytest.mark.parametrize(
    "damage", mostly_long([Folder.empty, Folder.tear, Folder.flip], [Folder.tear]), ids=["empty", "torn", "flipped"]
)
def test_a_damaged_schema_can_be_removed(job: Job, memory: Folder, damage: Damage) -> None:
    schema = "state/0/0/_metadata/schema"
    damage(memory, schema)
    refused(job, memory, schema, "cannot be read: .*", remove(schema))
    assert_goes_on_without(job, memory, schema)


def test_a_snapshot_of_a_lost_batch_is_refused_before_a_later_start_goes_back_to_it(job: Job, memory: Folder) -> None:
    snapshot = memory.path / memory.versions("snapshot")[-1]
    later = f"state/0/1/{memory.newest + 2}.snapshot"
    shutil.copy(snapshot, memory.path / later)
    problem = f"is of a later batch than {memory.newest}, the newest in offsets"
    refused(job, memory, later, problem, remove(later))
    assert_goes_on_without(job, memory, later)


@pytest.mark.parametrize("store", mostly_long(["memory", "rocksdb"], ["memory"]))
@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (Folder.lose, "is lost"),
        (Folder.empty, "is empty"),
        (Folder.tear, "was not written to its end|cannot be read: .*"),
        (Folder.flip, "cannot be read: Checksum error: .*"),
    ],
    ids=["lost", "empty", "torn", "flipped"],
)
def test_with_damaged_changes_of_the_newest_batch_the_job_can_go_back(
    job: Job, damaged: Folder, store: StateStore, damage: Damage, problem: str
) -> None:
    changes = damaged.versions("delta" if store == "memory" else "changelog")[-1]
    removable = [f"offsets/{damaged.newest}", f"commits/{damaged.newest}"]
    if damage in (Folder.tear, Folder.flip):
        # The query has planned a batch before it reads the state.
        removable.insert(0, f"offsets/{damaged.newest + 1}")
    damage(damaged, changes)
    refused(job, damaged, changes, problem, remove(*removable))
    assert_goes_on_without(job, damaged, *removable)


@pytest.mark.parametrize("store", mostly_long(["memory", "rocksdb"], ["memory"]))
@pytest.mark.parametrize("lost", ["state", "state/0", "state/0/1"])
def test_lost_state_is_refused(job: Job, damaged: Folder, lost: str) -> None:
    damaged.lose(lost)
    partition = "1" if lost == "state/0/1" else "0"
    line = job.refusal(damaged.path)
    expected = rf"checkpoint \S+ is damaged: state/0/{partition}/\S+ is lost: {re.escape(REPLACE)}"
    assert re.fullmatch(expected, line), line


def test_the_command_prints_the_line_of_a_query_that_could_not_read_its_state(job: Job, memory: Folder) -> None:
    changes = memory.versions("delta")[-1]
    memory.tear(changes)
    job.process.options["checkpoint"] = str(memory.path)
    job.request()
    with job.giving_way():
        job.process.launch()
        try:
            line = job.process.await_line("the damage", lambda line: "is damaged" in line)
            assert f"checkpoint {memory.path} is damaged: {changes} was not written to its end: remove offsets/" in line
            assert job.process.wait() == 1
        finally:
            job.process.kill()
