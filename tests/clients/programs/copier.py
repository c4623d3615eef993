"""A consume-transform-produce loop in its own process, and the progress that it reports."""

import json
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Callable
from enum import Enum
from pathlib import Path

from confluent_kafka import Producer
from kio.schema.describe_transactions.v0.request import DescribeTransactionsRequest
from kio.schema.types import TransactionalId

from tests.clients.programs.go import built
from tests.clients.programs.java import program, tool
from tests.clients.programs.libraries import CONSUMER
from tests.clients.system import System
from tests.gateway.support.wire_client import WireClient
from tests.support.processes import Process
from tests.support.waiting import LIMIT_SECONDS

__all__ = ["STAGES", "Copier", "Library"]

MEMBERS = Path(__file__).parents[1] / "members"
TRANSACTION_SIZE = 3
STAGES = ("Begun", "Produced", "OffsetsSent", "Committed")
"""The stages of a transaction; Kafka's copier does not report them."""


class Library(Enum):
    """The client library of a copier."""

    JAVA = "java"
    LIBRDKAFKA = "librdkafka"
    FRANZ_GO = "franz-go"


class Copier:
    """Copies a topic of one partition in transactions, some of which it aborts.

    The program is Kafka's TransactionalMessageCopier or a counterpart: with another library, or with the Java client
    and the consumer group protocol, for which Kafka's has no option.
    """

    def __init__(self, system: System, library: Library, records: int, protocol: str, folder: Path) -> None:
        self._system = system
        self._input, self._output = system.new_topic(1), system.new_topic(1)
        self._group_id = f"copiers-{uuid.uuid4().hex[:8]}"
        self._transactional_id = f"copier-{uuid.uuid4().hex[:8]}"
        self._stages = Counter[str]()
        self._copied = 0
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
        command = _command(library, protocol, arguments, folder)
        self._process = Process(f"{library.value}'s copier in a {protocol} group", command, self._on_line)
        self._process.start()

    def await_stage(self, stage: str) -> None:
        """Wait until the copier reports this stage again."""
        before = self._stages[stage]
        self._wait(f"the stage {stage}", lambda: self._stages[stage] > before)

    def await_progress(self, transactions: int = 3) -> None:
        """Wait until the copier has committed more transactions."""
        goal = self._copied + transactions * TRANSACTION_SIZE
        self._wait(f"{goal} records copied", lambda: self._copied >= goal)

    def kill(self) -> None:
        """``kill -9`` the copier, at any stage."""
        self._process.kill()

    def producer_epoch(self) -> int:
        """The epoch of the copier's producer according to the broker; with transactions V2, each end raises it."""
        request = DescribeTransactionsRequest(transactional_ids=(TransactionalId(self._transactional_id),))
        with WireClient(int(self._system.broker.bootstrap_servers.rpartition(":")[2])) as broker:
            (state,) = broker.ask(request).transaction_states
        epoch: int = state.producer_epoch
        return epoch

    def check_exactly_once(self) -> None:
        """Check that the output holds exactly the records whose offsets are committed.

        Call it after :meth:`kill`; it fences the copier, which aborts an open transaction.
        """
        successor = Producer(
            {"bootstrap.servers": self._system.bootstrap_servers, "transactional.id": self._transactional_id}
        )
        successor.init_transactions(LIMIT_SECONDS)
        committed = self._system.committed(self._group_id, self._input)[0]
        assert committed >= self._copied > 0, f"committed {committed}, copied {self._copied}"
        produced, expected = self._system.records(self._output), self._system.records(self._input)[:committed]
        missing, uncommitted = sorted(set(expected) - set(produced)), sorted(set(produced) - set(expected))
        assert produced == expected, (
            f"{len(produced)} records for {committed} committed; missing: {missing}, not committed: {uncommitted}\n"
            + self._process.tail()
        )

    def _wait(self, what: str, condition: Callable[[], bool]) -> None:
        def is_over() -> bool:
            return condition() or not self._process.is_running

        with self._changed:
            in_time = self._changed.wait_for(is_over, LIMIT_SECONDS)
        assert in_time, f"waited {LIMIT_SECONDS:g} s for: {what}\n{self._process.tail()}"
        assert self._process.is_running, self._process.tail()

    def _on_line(self, line: str) -> None:
        if not line.startswith("{"):
            return
        event = json.loads(line)
        with self._changed:
            self._stages[event["stage"]] += 1
            self._copied = event["totalProcessed"]
            self._changed.notify_all()


def _command(library: Library, protocol: str, arguments: list[str], folder: Path) -> list[str]:
    chosen = ("--group-protocol", protocol)
    if library is Library.FRANZ_GO:
        return [str(built(MEMBERS / "franz_go", folder)), *arguments, *chosen]
    if library is Library.LIBRDKAFKA:
        return [sys.executable, "-m", "tests.clients.members.librdkafka_copier", *arguments, *chosen]
    if protocol == CONSUMER:
        return program(MEMBERS / "TransactionalCopier.java", *arguments, *chosen)
    switches = ("--input-partition", 0, "--enable-random-aborts", "--group-mode", "--use-group-metadata")
    return tool("transactional-message-copier", *arguments, *switches)
