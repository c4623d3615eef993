"""kafka-console-consumer and kafka-consumer-groups, through the whole life of one group."""

import subprocess

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.clients.conftest import NewProcess
from tests.clients.programs.java import tool
from tests.clients.system import System
from tests.support.processes import Process
from tests.support.topics import create_topic, unique
from tests.support.waiting import LIMIT_SECONDS

PARTITIONS = 3
RECORDS = 20
ALL_RECORDS = PARTITIONS * RECORDS


def groups(system: System, *arguments: str) -> str:
    """The output of kafka-consumer-groups with these arguments, including errors."""
    command = tool("kafka-consumer-groups", "--bootstrap-server", system.bootstrap_servers, *arguments)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_SECONDS)
    return done.stdout


def rows(table: str, group_id: str) -> list[list[str]]:
    """The cells of a group's rows."""
    return [line.split() for line in table.splitlines() if line.split()[:1] == [group_id]]


def console_consumer(system: System, group_id: str, topic: str, *arguments: str) -> list[str]:
    """The command of a console consumer in a group."""
    where = ("--bootstrap-server", system.bootstrap_servers, "--topic", topic, "--group", group_id)
    return tool("kafka-console-consumer", *where, "--consumer-property", "heartbeat.interval.ms=500", *arguments)


def records(reader: Process) -> list[str]:
    """The records in a console consumer's output, without its log lines."""
    return sorted(line for line in reader.output if line.startswith("record"))


def test_a_group_is_consumed_described_reset_and_deleted(system: System, new_process: NewProcess) -> None:
    topic, group = system.new_topic(PARTITIONS), "console"
    system.produce(topic, range(PARTITIONS), RECORDS)

    reader = new_process("console consumer", console_consumer(system, group, topic, "--from-beginning"))
    reader.await_line("all records", lambda _: len(records(reader)) >= ALL_RECORDS)
    assert records(reader) == sorted(f"record {number}" for number in range(RECORDS) for _ in range(PARTITIONS))

    # While the group is Stable, it can be described, but neither reset nor deleted.
    (member,) = rows(groups(system, "--describe", "--group", group, "--members", "--verbose"), group)
    assert member[1].startswith("console-consumer-")
    assert member[2:5] == ["/127.0.0.1", "console-consumer", str(PARTITIONS)]
    assert any("0,1,2" in cell for cell in member)
    assert rows(groups(system, "--list", "--state"), group) == [[group, "Stable"]]
    state = groups(system, "--describe", "--group", group, "--state")
    assert system.bootstrap_servers in state
    assert rows(state, group)[0][-3:] == ["range", "Stable", "1"]
    busy = groups(system, "--group", group, "--topic", topic, "--reset-offsets", "--to-earliest", "--execute")
    assert "Assignments can only be reset if the group" in busy
    assert "current state is Stable" in busy
    assert "GroupNotEmptyException" in groups(system, "--delete", "--group", group)

    assert reader.stop() in (0, 130, 143)
    described = sorted(rows(groups(system, "--describe", "--group", group), group))
    assert [row[1:6] for row in described] == [[topic, str(index), "20", "20", "0"] for index in range(PARTITIONS)]
    assert rows(groups(system, "--list", "--state", "empty"), group) == [[group, "Empty"]]

    # After a reset by five records, only those are consumed again.
    shift = ("--group", group, "--topic", topic, "--reset-offsets", "--shift-by", "-5")
    planned = [[group, topic, str(index), "15"] for index in range(PARTITIONS)]
    assert sorted(rows(groups(system, *shift, "--dry-run"), group)) == planned
    assert set(system.committed(group, topic).values()) == {20}
    assert sorted(rows(groups(system, *shift, "--execute"), group)) == planned
    again = new_process("second console consumer", console_consumer(system, group, topic, "--max-messages", "15"))
    assert again.wait() == 0
    assert records(again) == sorted(f"record {number}" for number in range(15, 20) for _ in range(PARTITIONS))

    deleted = groups(system, "--delete-offsets", "--group", group, "--topic", f"{topic}:0")
    assert [topic, "0", "Successful"] in [line.split() for line in deleted.splitlines()]
    assert system.committed(group, topic) == {1: 20, 2: 20}

    assert "was successful" in groups(system, "--delete", "--group", group)
    assert group not in groups(system, "--list").split()
    assert f"GroupIdNotFoundException: Group {group} not found" in groups(system, "--describe", "--group", group)


def test_a_group_leaves_a_deleted_topic_and_reads_its_namesake_from_the_start(
    system: System, new_process: NewProcess
) -> None:
    """The topic is deleted at the brokers: nothing of it passes through the gateway."""
    brokers, topic, stays, group = system.broker.bootstrap_servers, unique("deleted"), system.new_topic(1), "leaves"
    create_topic(brokers, topic, 2)
    system.produce(topic, range(2), RECORDS)
    system.produce(stays, [0], RECORDS)
    committing = Consumer({"bootstrap.servers": system.bootstrap_servers, "group.id": group})
    partitions = [
        TopicPartition(topic, 0, RECORDS),
        TopicPartition(topic, 1, RECORDS),
        TopicPartition(stays, 0, RECORDS),
    ]
    committing.commit(offsets=partitions, asynchronous=False)
    committing.close()
    admin = AdminClient({"bootstrap.servers": brokers})
    admin.delete_topics([topic])[topic].result(LIMIT_SECONDS)

    kept = [[group, stays, "0", str(RECORDS)]]
    assert [row[:4] for row in rows(groups(system, "--describe", "--group", group), group)] == kept
    assert [row[:4] for row in rows(groups(system, "--describe", "--all-groups"), group)] == kept
    planned = groups(system, "--group", group, "--all-topics", "--reset-offsets", "--to-earliest", "--dry-run")
    assert rows(planned, group) == [[group, stays, "0", "0"]]

    create_topic(brokers, topic, 2)
    system.produce(topic, range(2), RECORDS + 10)
    reader = new_process("console consumer", console_consumer(system, group, topic, "--from-beginning"))
    reader.await_line("all records", lambda _: len(records(reader)) >= 2 * (RECORDS + 10))
    assert records(reader) == sorted(f"record {number}" for number in range(RECORDS + 10) for _ in range(2))
