"""The embedded broker: a real one, that keeps its data when asked to and never outlives its starter."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
)

import streaming.broker
from streaming.broker import BrokerStartError, EmbeddedBroker

LIMIT_SECONDS = 30.0


def test_answers_with_its_own_cluster_id(broker: EmbeddedBroker) -> None:
    metadata = _admin(broker).list_topics(timeout=LIMIT_SECONDS)

    assert metadata.cluster_id == broker.cluster_id
    assert [f"{node.host}:{node.port}" for node in metadata.brokers.values()] == [broker.bootstrap_servers]


def test_a_topic_can_be_created_written_and_read(broker: EmbeddedBroker) -> None:
    topic = _new_topic(broker)
    _produce(broker, topic, [b"one", b"two"])

    assert _consume(broker, topic, 2) == [b"one", b"two"]


def test_a_topic_that_nobody_created_does_not_appear(broker: EmbeddedBroker) -> None:
    admin = _admin(broker)

    assert admin.list_topics(topic="mistyped", timeout=LIMIT_SECONDS).topics["mistyped"].error is not None
    assert "mistyped" not in admin.list_topics(timeout=LIMIT_SECONDS).topics


def test_logs_to_its_file_and_nowhere_else() -> None:
    # In a process of its own: in this one, clients of other tests' brokers may still have something to say.
    program = (
        "from streaming.broker import EmbeddedBroker\n"
        "with EmbeddedBroker() as broker:\n"
        "    assert 'Kafka Server started' in broker.log_file.read_text()\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_properties_replace_the_defaults() -> None:
    with EmbeddedBroker(properties={"group.initial.rebalance.delay.ms": "7"}) as broker:
        resource = ConfigResource(ResourceType.BROKER, "1")
        admin = _admin(broker)
        answer = admin.describe_configs([resource])[resource].result(LIMIT_SECONDS)
    assert answer["group.initial.rebalance.delay.ms"].value == "7"


def test_nothing_is_left_after_stop() -> None:
    with EmbeddedBroker() as broker:
        pid, data_dir = broker.pid, broker.data_dir
        assert _is_alive(pid)

    assert not _is_alive(pid)
    assert not data_dir.exists()
    assert not broker.is_running


def test_a_data_folder_can_be_started_on_again(tmp_path: Path) -> None:
    with EmbeddedBroker(data_dir=tmp_path) as first:
        cluster_id = first.cluster_id
        topic = _new_topic(first)
        _produce(first, topic, [b"kept"])

    with EmbeddedBroker(data_dir=tmp_path) as second:
        assert second.cluster_id == cluster_id
        assert _consume(second, topic, 1) == [b"kept"]


def test_a_killed_broker_comes_back_at_its_address_with_its_data() -> None:
    with EmbeddedBroker() as broker:
        address, pid = broker.bootstrap_servers, broker.pid
        topic = _new_topic(broker)
        _produce(broker, topic, [b"kept"])

        broker.kill()
        assert not _is_alive(pid)
        broker.restart()

        assert broker.bootstrap_servers == address
        assert _consume(broker, topic, 1) == [b"kept"]


def test_dies_with_a_parent_that_is_killed() -> None:
    script = (
        "import signal\n"
        "from streaming.broker import EmbeddedBroker\n"
        "broker = EmbeddedBroker()\n"
        "broker.start()\n"
        "print(broker.pid, broker.data_dir, flush=True)\n"
        "signal.pause()\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid, data_dir = parent.stdout.readline().split()
        assert _is_alive(int(pid))
        parent.kill()

    _await(lambda: not _is_alive(int(pid)), "the broker ends")
    _await(lambda: not Path(data_dir).exists(), "its temporary data folder is removed")


@pytest.mark.skipif(sys.platform != "linux", reason="no other system can end a child with its parent")
def test_dies_with_the_process_that_guards_it() -> None:
    with EmbeddedBroker() as broker:
        pid, guard_pid = broker.pid, os.getpgid(broker.pid)
        os.kill(guard_pid, signal.SIGKILL)

        _await(lambda: not _is_running(pid), "the broker ends")
        _await(lambda: not broker.is_running, "its end is noticed")


def test_ctrl_c_in_the_terminal_does_not_reach_the_broker(broker: EmbeddedBroker) -> None:
    assert os.getpgid(broker.pid) != os.getpgid(os.getpid())


def test_a_broker_that_ignores_sigterm_is_stopped_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming.broker, "STOP_LIMIT_SECONDS", 0.5)
    with EmbeddedBroker() as broker:
        pid = broker.pid
        os.kill(pid, signal.SIGSTOP)

    assert not _is_alive(pid)


def test_other_ports_are_tried_when_one_is_taken_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    choose = streaming.broker._free_ports
    with socket.create_server(("127.0.0.1", 0)) as squatter:
        taken = squatter.getsockname()[1]
        choices = iter([(choose(0)[0], taken), (taken, choose(0)[1])])
        monkeypatch.setattr(streaming.broker, "_free_ports", lambda port: next(choices, None) or choose(port))

        with EmbeddedBroker() as broker:
            assert not broker.bootstrap_servers.endswith(f":{taken}")


def test_a_given_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as squatter:
        taken = squatter.getsockname()[1]
        with pytest.raises(BrokerStartError, match=f"127.0.0.1:{taken}"):
            EmbeddedBroker(port=taken).start()


def test_a_failed_start_shows_the_log_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    broker = EmbeddedBroker(properties={"offsets.topic.num.partitions": "many"})

    with pytest.raises(BrokerStartError, match=r"offsets\.topic\.num\.partitions"):
        broker.start()

    assert not broker.is_running
    assert list(tmp_path.iterdir()) == []


def test_a_broker_that_ends_at_its_start_shows_its_log(tmp_path: Path) -> None:
    with EmbeddedBroker(data_dir=tmp_path):
        pass
    broker = EmbeddedBroker(data_dir=tmp_path, jvm_options=["-Xmx384m", "-XX:+NoSuchOption"])

    with pytest.raises(BrokerStartError, match="NoSuchOption"):
        broker.start()


def _admin(broker: EmbeddedBroker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})


def _new_topic(broker: EmbeddedBroker) -> str:
    topic = f"test-broker-{uuid4()}"
    # The answer is lost when the client is garbage before it comes, hence the name.
    admin = _admin(broker)
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(LIMIT_SECONDS)
    return topic


def _produce(broker: EmbeddedBroker, topic: str, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(LIMIT_SECONDS) == 0


def _consume(broker: EmbeddedBroker, topic: str, count: int) -> list[bytes | None]:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": f"test-broker-{uuid4()}",
            "log_level": 0,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        messages = consumer.consume(count, timeout=LIMIT_SECONDS)
    finally:
        consumer.close()
    return [message.value() for message in messages if message.error() is None]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _is_running(pid: int) -> bool:
    """A zombie is not: an orphan stays one where the system's first process reaps none."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def _await(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + LIMIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited {LIMIT_SECONDS:g} s in vain until {what}"
        time.sleep(0.02)
