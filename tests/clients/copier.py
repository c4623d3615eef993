"""A consume-transform-produce loop in a process of its own, and how far it is by its own words."""

import json
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Callable

from confluent_kafka import Producer

from tests.clients.java import tool
from tests.clients.libraries import Library
from tests.clients.process import Process
from tests.clients.system import LIMIT_SECONDS, System

__all__ = ["STAGES", "Copier"]

TRANSACTION_SIZE = 3
STAGES = ("Begun", "Produced", "OffsetsSent", "Committed")
"""The steps of a transaction; told by librdkafka's copier only."""


class Copier:
    """Copies a topic of one partition in transactions, of which it aborts some: Kafka's own TransactionalMessageCopier,
    or the same with librdkafka."""

    def __init__(self, system: System, library: Library, records: int) -> None:
        self._system = system
        self._input, self._output = system.new_topic(1), system.new_topic(1)
        self._group_id = f"copiers-{uuid.uuid4().hex[:8]}"
        self._transactional_id = f"copier-{uuid.uuid4().hex[:8]}"
        self._told = Counter[str]()
        self._consumed = 0
        self._changed = threading.Condition()
        system.produce(self._input, [0], records)
        options = {
            "broker-list": system.bootstrap_servers,
            "input-topic": self._input,
            "output-topic": self._output,
            "consumer-group": self._group_id,
            "transactional-id": self._transactional_id,
            "transaction-size": TRANSACTION_SIZE,
        }
        arguments = [part for name, value in options.items() for part in (f"--{name}", str(value))]
        if library is Library.JAVA:
            switches = ("--input-partition", 0, "--enable-random-aborts", "--group-mode", "--use-group-metadata")
            command = tool("transactional-message-copier", *arguments, *switches)
        else:
            command = [sys.executable, "-m", "tests.clients.members.librdkafka_copier", *arguments]
        self._process = Process(f"{library}'s copier", command, self._take_line)
        self._process.start()

    def await_stage(self, stage: str) -> None:
        """Wait until it says that it has come to this stage once more."""
        before = self._told[stage]
        self._wait(f"the stage {stage}", lambda: self._told[stage] > before)

    def await_progress(self, transactions: int = 3) -> None:
        """Wait until it has committed more."""
        goal = self._consumed + transactions * TRANSACTION_SIZE
        self._wait(f"{goal} records copied", lambda: self._consumed >= goal)

    def kill(self) -> None:
        """``kill -9``, wherever it is."""
        self._process.kill()

    def check_exactly_once(self) -> None:
        """What was produced is what was committed as consumed. It must have been killed: its transaction is aborted."""
        successor = Producer(
            {"bootstrap.servers": self._system.bootstrap_servers, "transactional.id": self._transactional_id}
        )
        successor.init_transactions(LIMIT_SECONDS)
        committed = self._system.committed(self._group_id, self._input)[0]
        assert committed >= self._consumed > 0, f"{committed} is committed, where {self._consumed} were copied"
        produced, expected = self._system.records(self._output), self._system.records(self._input)[:committed]
        missing, uncalled_for = sorted(set(expected) - set(produced)), sorted(set(produced) - set(expected))
        assert produced == expected, (
            f"{len(produced)} records for {committed} committed; missing: {missing}, not committed: {uncalled_for}\n"
            + self._process.tail()
        )

    def _wait(self, what: str, condition: Callable[[], bool]) -> None:
        def came() -> bool:
            return condition() or not self._process.is_running

        with self._changed:
            in_time = self._changed.wait_for(came, LIMIT_SECONDS)
        assert in_time, f"waited {LIMIT_SECONDS:g} s for: {what}\n{self._process.tail()}"
        assert self._process.is_running, self._process.tail()

    def _take_line(self, line: str) -> None:
        if not line.startswith("{"):
            return
        event = json.loads(line)
        with self._changed:
            self._told[event["stage"]] += 1
            self._consumed = event["consumed"]
            self._changed.notify_all()
