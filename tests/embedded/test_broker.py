"""The embedded broker: its data, its ports, and that it ends with the process that started it."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    ResourceType,
)

import streaming.embedded.broker
from streaming.contract.errors import CannotRun
from streaming.embedded.broker import BrokerStartError, EmbeddedBroker
from streaming.embedded.broker_watch import ending_with_broker
from tests.support.kafka_io import consume_all, produce_all
from tests.support.processes import exists, is_running, open_files
from tests.support.topics import create_topic, unique
from tests.support.waiting import LIMIT_SECONDS, wait_until

pytestmark = pytest.mark.jvm


def test_the_broker_reports_its_cluster_id_and_address(broker: EmbeddedBroker) -> None:
    metadata = _admin(broker).list_topics(timeout=LIMIT_SECONDS)

    assert metadata.cluster_id == broker.cluster_id
    assert [f"{node.host}:{node.port}" for node in metadata.brokers.values()] == [broker.bootstrap_servers]


def test_a_topic_can_be_created_written_and_read(broker: EmbeddedBroker) -> None:
    topic = _new_topic(broker)
    produce_all(broker.bootstrap_servers, topic, [b"one", b"two"])

    assert consume_all(broker.bootstrap_servers, topic, 2) == [b"one", b"two"]


def test_topics_are_not_created_automatically(broker: EmbeddedBroker) -> None:
    admin = _admin(broker)

    assert admin.list_topics(topic="mistyped", timeout=LIMIT_SECONDS).topics["mistyped"].error is not None
    assert "mistyped" not in admin.list_topics(timeout=LIMIT_SECONDS).topics


def test_the_broker_logs_to_its_file_only() -> None:
    # In a process of its own, because clients of other tests write to the stderr of this one.
    program = (
        "from streaming.embedded.broker import EmbeddedBroker\n"
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


def test_stop_leaves_neither_a_process_nor_a_folder() -> None:
    with EmbeddedBroker() as broker:
        pid, data_dir = broker.pid, broker.data_dir
        assert exists(pid)

    assert not exists(pid)
    assert not data_dir.exists()
    assert not broker.is_running


def test_a_later_broker_continues_on_the_same_data_folder(tmp_path: Path) -> None:
    with EmbeddedBroker(data_dir=tmp_path) as first:
        cluster_id = first.cluster_id
        topic = _new_topic(first)
        produce_all(first.bootstrap_servers, topic, [b"kept"])

    with EmbeddedBroker(data_dir=tmp_path) as second:
        assert second.bootstrap_servers == first.bootstrap_servers
        assert second.cluster_id == cluster_id
        assert consume_all(second.bootstrap_servers, topic, 1) == [b"kept"]


def test_a_second_broker_on_a_folder_in_use_is_refused_and_writes_nothing(tmp_path: Path) -> None:
    with EmbeddedBroker(data_dir=tmp_path) as first:
        configuration = {path: path.read_bytes() for path in (tmp_path / "server.properties", tmp_path / "port")}
        for _ in range(2):
            with pytest.raises(CannotRun, match=rf"^{tmp_path} is in use by process {os.getpid()} \("):
                EmbeddedBroker(data_dir=tmp_path).start()
        assert {path: path.read_bytes() for path in configuration} == configuration
        produce_all(first.bootstrap_servers, _new_topic(first), [b"works"])
        # A second process that holds the lock, if this one is killed.
        assert str(tmp_path / ".lock") in open_files(first.pid)


def test_a_broker_that_ends_by_itself_interrupts_what_runs_on_it(tmp_path: Path) -> None:
    reported: list[str] = []

    def kill_after_a_restart(broker: EmbeddedBroker) -> None:
        with ending_with_broker(broker, reported.append):
            broker.restart()
            assert broker.failure is None
            os.kill(broker.pid, signal.SIGKILL)
            threading.Event().wait(LIMIT_SECONDS)

    why = f"^the Kafka broker has ended: killed by SIGKILL; its log: {tmp_path / 'broker.log'}$"
    with EmbeddedBroker(data_dir=tmp_path) as broker, pytest.raises(CannotRun, match=why):
        kill_after_a_restart(broker)
    assert reported == ["stopping: the Kafka broker has ended"]


def test_a_killed_broker_restarts_at_its_address_with_its_data() -> None:
    with EmbeddedBroker() as broker:
        address, pid = broker.bootstrap_servers, broker.pid
        topic = _new_topic(broker)
        produce_all(broker.bootstrap_servers, topic, [b"kept"])

        broker.kill()
        assert not exists(pid)
        broker.restart()

        assert broker.bootstrap_servers == address
        assert consume_all(broker.bootstrap_servers, topic, 1) == [b"kept"]


def test_the_broker_ends_with_a_parent_that_is_killed() -> None:
    script = (
        "import signal\n"
        "from streaming.embedded.broker import EmbeddedBroker\n"
        "broker = EmbeddedBroker()\n"
        "broker.start()\n"
        "print(broker.pid, broker.data_dir, flush=True)\n"
        "signal.pause()\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid, data_dir = parent.stdout.readline().split()
        assert exists(int(pid))
        parent.kill()

    wait_until(lambda: not exists(int(pid)), "the broker ends")
    wait_until(lambda: not Path(data_dir).exists(), "its temporary data folder is removed")


@pytest.mark.skipif(sys.platform != "linux", reason="no other system can end a child with its parent")
def test_the_broker_ends_with_its_guard_process() -> None:
    with EmbeddedBroker() as broker:
        pid, guard_pid = broker.pid, os.getpgid(broker.pid)
        os.kill(guard_pid, signal.SIGKILL)

        wait_until(lambda: not is_running(pid), "the broker ends")
        wait_until(lambda: not broker.is_running, "its end is noticed")


def test_ctrl_c_in_the_terminal_does_not_reach_the_broker(broker: EmbeddedBroker) -> None:
    assert os.getpgid(broker.pid) != os.getpgid(os.getpid())


def test_a_broker_that_ignores_sigterm_is_killed() -> None:
    with EmbeddedBroker(stop_limit_seconds=0.5) as broker:
        pid = broker.pid
        os.kill(pid, signal.SIGSTOP)

    assert not exists(pid)


def test_other_ports_are_tried_when_one_is_taken_in_the_meantime(monkeypatch: pytest.MonkeyPatch) -> None:
    choose = streaming.embedded.broker._free_ports
    with socket.create_server(("127.0.0.1", 0)) as squatter:
        taken = squatter.getsockname()[1]
        choices = iter([(choose(0)[0], taken), (taken, choose(0)[1])])
        monkeypatch.setattr(streaming.embedded.broker, "_free_ports", lambda port: next(choices, None) or choose(port))

        with EmbeddedBroker() as broker:
            assert not broker.bootstrap_servers.endswith(f":{taken}")


def test_a_requested_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as squatter:
        taken = squatter.getsockname()[1]
        with pytest.raises(BrokerStartError, match=f"127.0.0.1:{taken}"):
            EmbeddedBroker(port=taken).start()


def test_a_failed_start_shows_the_log_and_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    topic = unique("test-broker")
    create_topic(broker.bootstrap_servers, topic)
    return topic
