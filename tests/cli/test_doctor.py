"""``group-coordinator doctor`` against a real broker, and against an address where no broker is."""

import json
import os
import re
import time
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from typer.testing import CliRunner

from streaming.cli.app import app
from streaming.cli.checks import packages, runtime
from streaming.cli.checks.finding import Finding
from streaming.contract.topics import TopicNames
from streaming.embedded.broker import EmbeddedBroker
from streaming.job.checkpoints.lock import checkpoint_lock
from streaming.job.spark_internals.registry import OFF_VARIABLE
from streaming.job.state_stores import PROVIDER, STATE_STORES
from streaming.job.topics.creation import ensure_topics
from streaming.job.topics.layout import TopicLayout
from tests.support.topics import create_topic
from tests.support.waiting import LIMIT_SECONDS

UNREACHABLE = "127.0.0.1:1"


def examine(*arguments: str) -> tuple[int, dict[str, Finding]]:
    """Run doctor; its exit code, and the findings by the name of their check."""
    # A busy machine's broker may take longer than users would wait; of an option given twice, the last counts.
    patient = ["--timeout", f"{LIMIT_SECONDS:.0f}"]
    examined = CliRunner().invoke(app, ["doctor", "--json", *patient, *arguments])
    findings = [Finding(**found) for found in json.loads(examined.stdout)]
    return examined.exit_code, {finding.check: finding for finding in findings}


@pytest.fixture
def topics(broker: EmbeddedBroker) -> TopicNames:
    """A set of the coordinator's topics, with two request partitions."""
    names = TopicNames(f"doctor-{uuid.uuid4().hex[:8]}-")
    ensure_topics({"bootstrap.servers": broker.bootstrap_servers}, names, TopicLayout(2, 2))
    return names


def produce_request(broker: EmbeddedBroker, topics: TopicNames) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(topics.requests, b"{}")
    assert producer.flush(LIMIT_SECONDS) == 0


def test_a_sound_installation_has_no_problem(broker: EmbeddedBroker, topics: TopicNames, tmp_path: Path) -> None:
    produce_request(broker, topics)
    options = ["-b", broker.bootstrap_servers, "--topic-prefix", topics.prefix, "--checkpoint", str(tmp_path)]
    code, findings = examine(*options)
    assert (code, [finding for finding in findings.values() if finding.status == "problem"]) == (0, [])
    assert re.fullmatch(r"\d+\S* at /.*java", findings["Java"].detail)
    for check in ("Python", "packages", "extra job", "Java", "Python worker", "Spark internals", "topics", "clocks"):
        assert findings[check].status == "ok", findings[check]
    assert broker.bootstrap_servers in findings["brokers"].detail


def test_an_unreachable_broker_is_a_problem_with_its_reason() -> None:
    code, findings = examine("-b", UNREACHABLE, "--timeout", "2")
    assert code == 1
    assert findings["brokers"].status == "problem"
    assert "Connection refused" in findings["brokers"].detail
    assert "check the address" in findings["brokers"].advice


def test_the_files_about_senders_are_read(tmp_path: Path) -> None:
    keys, acls = tmp_path / "principal.key", tmp_path / "acls.toml"
    keys.write_text(f"User:alice {'a' * 32}\n")
    acls.write_text('[[acls]]\nprincipal = "User:alice"\ngroup = "alices"\noperations = ["Read"]\n')
    given = ["--set", f"principal-key-file={keys}", "--set", f"group-acl-file={acls}"]
    _, findings = examine(*given)
    assert (findings["senders"].status, findings["senders"].detail) == ("ok", "1 key for signatures; 1 rule")
    acls.write_text(acls.read_text().replace("Read", "Reed"))
    code, findings = examine(*given)
    assert (code, findings["senders"].status) == (1, "problem")
    assert findings["senders"].detail.startswith(f"group-acl-file {acls}: rule 1: operations: 'Reed' is not one of: ")
    assert "senders" not in examine()[1]


def test_a_topic_with_another_setting_is_a_problem_with_the_command_that_mends_it(broker: EmbeddedBroker) -> None:
    names = TopicNames(f"doctor-{uuid.uuid4().hex[:8]}-")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    created = admin.create_topics([NewTopic(names.requests, 2, 1, config={"message.timestamp.type": "CreateTime"})])
    created[names.requests].result(LIMIT_SECONDS)
    code, findings = examine("-b", broker.bootstrap_servers, "--topic-prefix", names.prefix)
    assert code == 1
    assert findings["topics"].detail.endswith("message.timestamp.type=CreateTime, it needs LogAppendTime")
    assert findings["topics"].advice.startswith("kafka-configs.sh --alter")


def test_a_risky_topic_is_shown_with_the_command_that_mends_it_and_is_no_problem(broker: EmbeddedBroker) -> None:
    names = TopicNames(f"doctor-{uuid.uuid4().hex[:8]}-")
    create_topic(
        broker.bootstrap_servers, names.requests, 2, {"message.timestamp.type": "LogAppendTime", "retention.ms": "9000"}
    )
    code, findings = examine("-b", broker.bootstrap_servers, "--topic-prefix", names.prefix)
    assert (code, findings["topics"].status) == (0, "risk")
    assert "retention.ms=9000: requests are deleted unread" in findings["topics"].detail
    assert findings["topics"].advice.endswith("--add-config retention.ms=86400000")


def test_missing_topics_are_noted_and_not_created(broker: EmbeddedBroker) -> None:
    prefix = f"doctor-{uuid.uuid4().hex[:8]}-"
    code, findings = examine("-b", broker.bootstrap_servers, "--topic-prefix", prefix)
    assert (code, findings["topics"].status, findings["clocks"].status) == (0, "note", "note")
    existing = AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=LIMIT_SECONDS).topics
    assert not any(topic.startswith(prefix) for topic in existing)


@pytest.mark.parametrize(
    ("seconds_later", "status", "detail"),
    [
        (0.0, "ok", "between the newest request's append time and now"),
        (3600.0, "note", "the newest request is 36"),
        (-3600.0, "problem", "ahead of this machine's"),
    ],
)
def test_the_append_time_of_the_newest_request_shows_a_clock_that_is_ahead(
    broker: EmbeddedBroker,
    topics: TopicNames,
    monkeypatch: pytest.MonkeyPatch,
    seconds_later: float,
    status: str,
    detail: str,
) -> None:
    produce_request(broker, topics)
    clock = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: clock() + int(seconds_later * 1e9))
    code, findings = examine("-b", broker.bootstrap_servers, "--topic-prefix", topics.prefix)
    assert (findings["clocks"].status, code) == (status, 1 if status == "problem" else 0)
    assert detail in findings["clocks"].detail


@pytest.mark.jvm
def test_without_an_address_and_a_checkpoint_only_the_machine_is_checked() -> None:
    code, findings = examine()
    assert (code, findings["brokers"].status, findings["checkpoint"].status) == (0, "note", "note")


def test_an_option_that_does_not_exist_is_a_problem(tmp_path: Path) -> None:
    file = tmp_path / "coordinator.toml"
    file.write_text("no-such-option = 1\n")
    code, findings = examine("--config", str(file))
    assert code == 1
    assert str(file) in findings["options"].detail


@pytest.mark.jvm
def test_a_checkpoint_that_does_not_exist_is_noted(tmp_path: Path) -> None:
    code, findings = examine("--checkpoint", str(tmp_path / "new"))
    assert (code, findings["checkpoint"].status) == (0, "note")
    assert not (tmp_path / "new").exists()


def write_plan(folder: Path, topic: str, partitions: int) -> None:
    """Write the checkpoint of a job that was killed in its first batch, whose plan has the format of Spark's log."""
    settings = {"spark.sql.shuffle.partitions": "2", PROVIDER: STATE_STORES["memory"][PROVIDER]}
    offsets = {topic: {str(index): 0 for index in range(partitions)}}
    (folder / "offsets").mkdir()
    (folder / "offsets" / "0").write_text(
        "v1\n" + json.dumps({"batchTimestampMs": 5, "conf": settings}) + "\n" + json.dumps(offsets)
    )
    (folder / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))


def test_a_checkpoint_that_fits_the_options_and_topics_is_described(
    broker: EmbeddedBroker, topics: TopicNames, tmp_path: Path
) -> None:
    write_plan(tmp_path, topics.requests, 2)
    options = ["-b", broker.bootstrap_servers, "--topic-prefix", topics.prefix, "--checkpoint", str(tmp_path)]
    detail = f"{tmp_path}: batch 0, state store memory, 2 state partitions"
    _, findings = examine(*options)
    assert (findings["checkpoint"].status, findings["checkpoint"].detail) == ("ok", detail)
    with checkpoint_lock(tmp_path) as lock:
        lock.acquire()
        _, findings = examine(*options)
    assert findings["checkpoint"].detail.startswith(f"{detail}, in use by process {os.getpid()} (")


def test_a_checkpoint_of_a_topic_with_more_partitions_is_a_problem(
    broker: EmbeddedBroker, topics: TopicNames, tmp_path: Path
) -> None:
    write_plan(tmp_path, topics.requests, 5)
    code, findings = examine(
        "-b", broker.bootstrap_servers, "--topic-prefix", topics.prefix, "--checkpoint", str(tmp_path)
    )
    assert (code, findings["checkpoint"].status) == (1, "problem")
    assert "5 partitions" in findings["checkpoint"].detail


def test_a_checkpoint_of_a_topic_that_was_created_again_is_a_problem(
    broker: EmbeddedBroker, topics: TopicNames, tmp_path: Path
) -> None:
    write_plan(tmp_path, topics.requests, 2)
    (tmp_path / "requests-topic").mkdir()
    (tmp_path / "requests-topic" / "the-id-of-former-topic").touch()
    options = ["-b", broker.bootstrap_servers, "--topic-prefix", topics.prefix, "--checkpoint", str(tmp_path)]
    code, findings = examine(*options)
    assert (code, findings["checkpoint"].status) == (1, "problem")
    assert "was deleted and created again" in findings["checkpoint"].detail
    assert findings["checkpoint"].advice.startswith("restore the former topic, or choose a new checkpoint")


@pytest.mark.jvm
@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("topic-prefix=other-", "not to other-group-requests"),
        ("state-partitions=1", "was made with state-partitions 2"),
    ],
)
def test_a_checkpoint_that_does_not_fit_the_options_is_a_problem(tmp_path: Path, setting: str, message: str) -> None:
    write_plan(tmp_path, "group-requests", 1)
    code, findings = examine("--checkpoint", str(tmp_path), "--set", setting)
    assert (code, findings["checkpoint"].status) == (1, "problem")
    assert message in findings["checkpoint"].detail + findings["checkpoint"].advice


def test_a_checkpoint_whose_newest_batch_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    write_plan(tmp_path, "group-requests", 1)
    (tmp_path / "offsets" / "1").write_text("not a plan")
    code, findings = examine("--checkpoint", str(tmp_path))
    assert (code, findings["checkpoint"].status) == (1, "problem")
    damage = f"checkpoint {tmp_path} is damaged: offsets/1 is not a batch that Spark has planned"
    assert findings["checkpoint"].detail.startswith(damage)
    assert findings["checkpoint"].advice == "remove offsets/1, and the job reads the requests of that time again"


def test_a_checkpoint_without_the_state_of_its_newest_batch_is_a_problem(tmp_path: Path) -> None:
    write_plan(tmp_path, "group-requests", 1)
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "0").write_text('v1\n{"nextBatchWatermarkMs":0}')
    _, findings = examine("--checkpoint", str(tmp_path))
    assert findings["checkpoint"].detail == f"checkpoint {tmp_path} is damaged: state/0/0/1.delta is lost"
    with checkpoint_lock(tmp_path) as lock:
        lock.acquire()
        # The running job may be between two files.
        _, findings = examine("--checkpoint", str(tmp_path))
    assert findings["checkpoint"].status == "ok"


@pytest.mark.jvm
def test_the_stock_worker_is_a_problem_only_where_it_was_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "installed_version", lambda _: "9.9.9")
    code, findings = examine("--set", "python-worker=stock")
    assert (code, findings["Python worker"].status) == (0, "ok")
    code, findings = examine()
    assert (code, findings["Python worker"].status) == (1, "problem")
    assert "9.9.9" in findings["Python worker"].detail


def test_an_internal_of_spark_that_cannot_be_used_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OFF_VARIABLE, "batch-end")
    code, findings = examine()
    assert (code, findings["Spark internals"].status) == (1, "problem")
    assert findings["Spark internals"].detail.startswith("without batch-end (")


@pytest.mark.parametrize(
    ("version", "bounds", "supported"),
    [
        ("4.2.0", "==4.2.0", True),
        ("4.2.0.dev1", "==4.2.0", True),
        ("4.2.1", "==4.2.0", False),
        ("3.0", "<3,>=2.2", False),
        ("2.10.1", "<3,>=2.2", True),
        ("2.2", ">=2.2.0", True),
        ("0.20.9", ">=0.21,<0.23", False),
    ],
)
def test_versions_are_compared_by_their_numbers(version: str, bounds: str, supported: bool) -> None:
    assert packages.is_supported(version, bounds) is supported


def test_a_package_of_an_unsupported_version_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"pyspark": "3.5.0"}
    monkeypatch.setattr(packages, "installed_version", lambda name: versions.get(name, "0.22.0"))
    requirements = ["msgspec<0.23,>=0.21", 'pyspark==4.2.0; extra == "job"']
    monkeypatch.setattr("importlib.metadata.requires", lambda _: requirements)
    findings = {finding.check: finding for finding in packages.check_packages()}
    assert findings["packages"].status == "ok"
    assert (findings["extra job"].status, findings["extra job"].advice) == ("problem", "pip install 'pyspark==4.2.0'")
