"""The part of the demo in which unmodified Kafka clients use the coordinator through a gateway.

Consumers of two client libraries share a group while the active job is killed and a standby takes its place.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient

from streaming.demo.consumer_reports import Check, ConsumerReport, ConsumerReports
from streaming.demo.kafka_consumer import ClientLibrary, installed_clients
from streaming.embedded.child_process import ChildProcess
from streaming.embedded.ports import free_address
from streaming.gateway.child import running_gateway

__all__ = ["GatewayClients"]

GROUP = "invoices"
ADMIN_TIMEOUT_SECONDS = 30.0
ERRORS_ONLY = 3


class GatewayClients:
    """A gateway, and the consumers that connect to it.

    ``reports`` collects the consumers' reports; ``assignments`` counts the assignments that they received.
    """

    def __init__(self, bootstrap_servers: str, topic: str, folder: Path, log: Callable[[str], None]) -> None:
        self.reports = ConsumerReports()
        self.assignments = 0
        self._broker_servers = bootstrap_servers
        self._topic = topic
        self._folder = folder
        self._log = log
        self._address = free_address()
        self._children = {client: self._child(client) for client in installed_clients()}

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the gateway and the consumers while the block runs. Raises CannotRun if the gateway does not start."""
        with (self._folder / "gateway.log").open("w") as log_file, ExitStack() as stack:
            options = {"bootstrap-servers": self._broker_servers, "listen": self._address}
            stack.enter_context(running_gateway(options, lambda line: print(line, file=log_file)))
            self._log(f"the gateway listens at {self._address}")
            if ClientLibrary.KAFKA_PYTHON not in self._children:
                self._log("kafka-python is not installed (extra `demo`): librdkafka joins alone")
            for client, child in self._children.items():
                stack.enter_context(child)
                self._log(f"a consumer of {client} starts, with the gateway as its bootstrap server")
            yield

    def share(self, partitions: int) -> bool:
        """Whether the consumers share all partitions evenly."""
        return self.reports.shared_by(*self._children, partitions=partitions)

    def check_description(self, partitions: int) -> Check:
        """Check that an admin client at the gateway sees a stable group with these members and all partitions."""
        admin = self._admin()
        group = admin.describe_consumer_groups([GROUP])[GROUP].result(ADMIN_TIMEOUT_SECONDS)
        owners = {
            member.client_id: sorted(assigned.partition for assigned in member.assignment.topic_partitions)
            for member in group.members
        }
        owned = sorted(partition for share in owners.values() for partition in share)
        passed = (
            group.state.name == "STABLE" and set(owners) == set(self._children) and owned == list(range(partitions))
        )
        shares = ", ".join(f"{name} {' '.join(map(str, share))}" for name, share in sorted(owners.items()))
        return Check(
            f"a group of {' and '.join(self._children)} is stable", passed, f"{group.state.name.lower()}; {shares}"
        )

    def check_no_rebalance(self, assignments_before: int) -> Check:
        """Check that no consumer has received another assignment since there were ``assignments_before``."""
        count = self.assignments - assignments_before
        return Check("the take-over caused no rebalance of the Kafka clients", count == 0, f"{count} new assignments")

    def close(self, ends: Mapping[int, int]) -> Iterator[Check]:
        """Close the consumers, and check that everything up to these end offsets was consumed and committed."""
        for client, child in self._children.items():
            child.terminate()
            self._log(f"{client} has closed")
        yield _through_gateway(self.reports.every_record_consumed(ends))
        admin = self._admin()
        futures = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(GROUP)])
        offsets = futures[GROUP].result(ADMIN_TIMEOUT_SECONDS).topic_partitions
        committed = {partition.partition: partition.offset for partition in offsets}
        yield _through_gateway(self.reports.committed_everything(committed, ends))

    def _admin(self) -> AdminClient:
        """A new admin client. Keep a reference until it has answered: its requests are lost with it."""
        # On closing it would warn of events that were never polled.
        return AdminClient({"bootstrap.servers": self._address, "log_level": ERRORS_ONLY})

    def _child(self, client: ClientLibrary) -> ChildProcess:
        command = [
            *(sys.executable, "-m", "streaming.demo.kafka_consumer", "--client", client),
            *("--bootstrap-servers", self._address, "--group", GROUP, "--topic", self._topic),
        ]
        return ChildProcess(client, command, self._folder / f"{client}.log", lambda line: self._on_line(client, line))

    def _on_line(self, client: ClientLibrary, line: str) -> None:
        if not line.startswith("{"):
            return
        report = msgspec.json.decode(line, type=ConsumerReport)
        if report.event == "owns":
            self.assignments += 1
            self._log(f"{client} owns partitions [cyan]{' '.join(map(str, report.partitions)) or 'none'}[/cyan]")
        self.reports.add(client, report)


def _through_gateway(check: Check) -> Check:
    return Check(f"{check.name} (through the gateway)", check.passed, check.detail)
