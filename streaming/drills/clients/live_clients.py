"""All live clients of a drill: the probe, members over topics, and Kafka consumers if there is a gateway."""

import time
import uuid
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Self

from streaming.client import CoordinatorClient, CoordinatorError
from streaming.client.librdkafka import LibrdkafkaConfig
from streaming.drills.clients.kafka_consumer import PARTITIONS, PROTOCOL_SETTINGS, KafkaConsumer
from streaming.drills.clients.members import LiveClient, LiveMember
from streaming.drills.clients.offsets import TOPIC, Ledger, committed_of, lost
from streaming.drills.clients.probe import ANSWER_LIMIT_MS, Probe
from streaming.drills.clients.records import RecordProducer, create_topic
from streaming.drills.recording import Recording
from streaming.drills.waiting import DrillFailed, await_until

GROUPS = 2
MEMBERS_A_GROUP = 2
RECORDS_PER_SECOND = 20
CLIENT_ID = "group-coordinator-drill"
SETTLE_LIMIT_SECONDS = 120.0
END_SECONDS = 5.0
MEMBERS_ANSWER_LIMIT_MS = 30_000


class LiveClients:
    """The clients, from the start of a ``with`` block to its end.

    prefix: that of the coordinator's topics. config: librdkafka's settings. gateway: the address of a gateway; None
    for no Kafka consumers. Their topic is created on ``bootstrap_servers``.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        recording: Recording,
        *,
        prefix: str = "",
        config: LibrdkafkaConfig | None = None,
        gateway: str | None = None,
    ) -> None:
        self.recording = recording
        self.ledger = Ledger()
        self._servers = bootstrap_servers
        self._prefix = prefix
        self._config = dict(config or {})
        self._gateway = gateway
        self._stack = ExitStack()
        self._members: list[LiveMember] = []
        self._consumers: list[KafkaConsumer] = []
        self._name = f"drill-{uuid.uuid4().hex[:8]}"
        self._probe_group = f"{self._name}-probe"
        self._member_groups = [f"{self._name}-members-{number}" for number in range(1, GROUPS + 1)]

    def __enter__(self) -> Self:
        with ExitStack() as on_failure:
            on_failure.callback(self.__exit__)
            self._start()
            on_failure.pop_all()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.watch(False)
        for client in self._watched:
            client.stop()
        _join(self._watched)
        # What still waits for an answer fails when the connections close.
        self._stack.close()
        _join(self._watched)

    @property
    def _watched(self) -> list[LiveClient]:
        return [*self._members, *self._consumers]

    def client(self, answer_limit_ms: int) -> CoordinatorClient:
        """A connection to the coordinator, which lasts as long as the clients."""
        return self._stack.enter_context(self._connect(answer_limit_ms))

    def _connect(self, answer_limit_ms: int) -> CoordinatorClient:
        return CoordinatorClient(
            self._servers,
            topic_prefix=self._prefix,
            client_id=CLIENT_ID,
            request_timeout_ms=answer_limit_ms,
            config={"log_level": 0, **self._config},
        )

    def _start(self) -> None:
        self._patient = self.client(ANSWER_LIMIT_MS)
        shared = self.client(MEMBERS_ANSWER_LIMIT_MS)
        for group in self._member_groups:
            for partition in range(MEMBERS_A_GROUP):
                self._members.append(LiveMember(shared, self.recording, self.ledger, group, partition))
        probe = Probe(self._patient, self.recording, self.ledger, self._probe_group)
        self._stack.callback(probe.join)
        self._stack.callback(probe.stop)
        if self._gateway is not None:
            create_topic(self._servers, TOPIC, PARTITIONS)
            producer = RecordProducer(self._servers, TOPIC, PARTITIONS, RECORDS_PER_SECOND)
            self._stack.callback(producer.stop)
            producer.start()
            for protocol in PROTOCOL_SETTINGS:
                group = f"{self._name}-kafka-{protocol}"
                self._consumers.append(KafkaConsumer(self._gateway, self.recording, self.ledger, group, protocol))
                self._consumers[-1].start()
        for thread in (probe, *self._members):
            thread.start()

    # ---- what a drill waits for and asks ------------------------------------------------------------------------

    def settle(self) -> None:
        """Wait until every member has its assignment, and all requests until now are answered. Raises DrillFailed."""
        await_until(
            lambda: not self._unsettled(),
            lambda: f"an assignment for {', '.join(self._unsettled())}",
            SETTLE_LIMIT_SECONDS,
        )
        self.await_answers()

    def watch(self, watched: bool = True) -> None:
        """Record what members and the Kafka consumers notice from now on, or no longer."""
        for client in self._watched:
            client.watch(watched)

    def generations(self) -> dict[str, int]:
        """The newest generation in which a member of each group has an assignment."""
        found: dict[str, int] = {}
        for member in self._members:
            found[member.group] = max(found.get(member.group, -1), member.assigned_in or -1)
        return found

    def await_answers(self) -> None:
        """Wait until every request that the probe has sent until now is answered. Raises DrillFailed."""
        end = self.recording.now()
        await_until(
            lambda: not self.recording.unanswered(end),
            lambda: f"answers to the {self.recording.unanswered(end)} requests that wait",
            SETTLE_LIMIT_SECONDS,
        )

    def missing_commits(self) -> list[str]:
        """Read all offsets; returns a sentence for each acknowledged commit that is lost. Raises DrillFailed."""
        acknowledged = self.ledger.acknowledged()
        try:
            return lost(acknowledged, committed_of(self._patient, sorted({group for group, _ in acknowledged})))
        except CoordinatorError as failure:
            raise DrillFailed(f"the committed offsets cannot be read: {failure}") from failure

    def delete_groups(self) -> None:
        """Delete the groups, when their members have left; as far as the coordinator answers."""
        with suppress(CoordinatorError), self._connect(MEMBERS_ANSWER_LIMIT_MS) as client:
            client.delete_groups([self._probe_group, *self._member_groups, *(each.group for each in self._consumers)])

    def _unsettled(self) -> list[str]:
        waiting = [member.name for member in self._members if member.assigned_in is None]
        waiting += [
            group
            for group in self._member_groups
            if len({member.assigned_in for member in self._members if member.group == group}) > 1
        ]
        waiting += [consumer.name for consumer in self._consumers if not consumer.is_settled]
        return waiting


def _join(threads: Sequence[LiveClient]) -> None:
    deadline = time.monotonic() + END_SECONDS
    for thread in threads:
        if thread.is_alive():
            thread.join(max(0.0, deadline - time.monotonic()))
