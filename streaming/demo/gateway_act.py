"""The act of the demo in which Kafka clients as they are use the coordinator, through a gateway.

Two client libraries share one group. They are there while the coordinator is killed, and are not to notice.
"""

import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient

from streaming.demo.consumer_process import ConsumerReport
from streaming.demo.kafka_consumer import Client
from streaming.demo.ledger import Check, Ledger
from streaming.demo.processes import Child
from streaming.gateway.child import running_gateway

__all__ = ["KafkaClients"]

GROUP = "invoices"
ASK_SECONDS = 30.0
LOG_ERRORS = 3


class KafkaClients:
    """A gateway, and the consumers that connect to it.

    ``ledger`` is what they have reported, ``rebalances`` how often they were told of an assignment.
    """

    def __init__(self, bootstrap_servers: str, topic: str, folder: Path, say: Callable[[str], None]) -> None:
        self.ledger = Ledger()
        self.rebalances = 0
        self._real_servers = bootstrap_servers
        self._topic = topic
        self._folder = folder
        self._say = say
        self._address = f"127.0.0.1:{_free_port()}"
        self._children = {client: self._child(client) for client in Client}

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the gateway and the consumers while the block runs. Raises :class:`streaming.errors.CannotRun`."""
        with (self._folder / "gateway.log").open("w") as log, ExitStack() as stack:
            options = {"bootstrap-servers": self._real_servers, "listen": self._address}
            stack.enter_context(running_gateway(options, lambda line: print(line, file=log)))
            self._say(f"the gateway stands at {self._address}")
            for client, child in self._children.items():
                stack.enter_context(child)
                self._say(f"a consumer of {client} starts, with the gateway's address")
            yield

    def share(self, partitions: int) -> bool:
        """Whether both own the partitions, evenly."""
        return self.ledger.shared_by(*Client, partitions=partitions)

    def described(self, partitions: int) -> Check:
        """What an admin client sees through the gateway: a group as any other."""
        admin = self._admin()
        seen = admin.describe_consumer_groups([GROUP])[GROUP].result(ASK_SECONDS)
        owners = {
            member.client_id: sorted(owned.partition for owned in member.assignment.topic_partitions)
            for member in seen.members
        }
        owned = sorted(partition for partitions_of_one in owners.values() for partition in partitions_of_one)
        passed = seen.state.name == "STABLE" and set(owners) == set(Client) and owned == list(range(partitions))
        shares = ", ".join(f"{name} {' '.join(map(str, share))}" for name, share in sorted(owners.items()))
        return Check("clients of two libraries share a group", passed, f"{seen.state.name.lower()}; {shares}")

    def not_rebalanced_since(self, rebalances: int) -> Check:
        """Whether nobody was told of an assignment since there were so many."""
        count = self.rebalances - rebalances
        return Check("Kafka's clients did not notice the kill", count == 0, f"{count} assignments since")

    def end(self, ends: Mapping[int, int]) -> Iterator[Check]:
        """Close the consumers in order; whether all was consumed, and all is committed."""
        for client, child in self._children.items():
            child.terminate()
            self._say(f"{client} is closed")
        yield _of_kafka_clients(self.ledger.every_record_consumed(ends))
        admin = self._admin()
        asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(GROUP)])
        found = asked[GROUP].result(ASK_SECONDS).topic_partitions
        committed = {partition.partition: partition.offset for partition in found}
        yield _of_kafka_clients(self.ledger.committed_everything(committed, ends))

    def _admin(self) -> AdminClient:
        """To be kept until it has answered: what it was asked goes with it."""
        # It warns of what it had not handed over when it is closed.
        return AdminClient({"bootstrap.servers": self._address, "log_level": LOG_ERRORS})

    def _child(self, client: Client) -> Child:
        command = [
            *(sys.executable, "-m", "streaming.demo.kafka_consumer", "--client", client),
            *("--bootstrap-servers", self._address, "--group", GROUP, "--topic", self._topic),
        ]
        return Child(client, command, self._folder / f"{client}.log", lambda line: self._on_line(client, line))

    def _on_line(self, client: Client, line: str) -> None:
        if not line.startswith("{"):
            return
        report = msgspec.json.decode(line, type=ConsumerReport)
        if report.event == "owns":
            self.rebalances += 1
            self._say(f"{client} owns [cyan]{' '.join(map(str, report.partitions)) or 'nothing'}[/cyan]")
        self.ledger.take(client, report)


def _of_kafka_clients(check: Check) -> Check:
    return Check(f"{check.name}, through the gateway", check.passed, check.detail)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
