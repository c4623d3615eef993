"""The Java classes of kafka-clients, called from Python in a small JVM.

The broker's jars contain kafka-clients. py4j, which pyspark installs, calls the classes, so nothing has to be compiled.
Each call takes tenths of a millisecond; inputs are therefore passed as bytes that Kafka's classes decode.
"""

import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12.response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kio.schema.types import BrokerId, TopicName
from kio.serial import entity_writer
from kio.static.primitive import i32, i32Timedelta
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from coordinator_logic.assignors import TopicMetadata
from coordinator_logic.embedded_protocols import Assignment, Subscription, TopicPartition
from streaming.embedded.jars import java_executable, resolve_jars

ANSWER_LIMIT_SECONDS = 120.0
END_LIMIT_SECONDS = 60.0

Assigned = dict[str, list[TopicPartition]]

_write_metadata = entity_writer(MetadataResponse)
_MEMBER_IN_TEXT = re.compile(r"(?:\{|, )([^{,]*?)=Assignment\(partitions=\[(.*?)\]")


class JavaException(Exception):
    """A Java method threw an exception; the message is the simple name of its class."""


class KafkaClasses:
    """Classes of kafka-clients 4.3. A context manager: the JVM ends with the context or with this process."""

    def __init__(self) -> None:
        jars = [str(jar) for jar in resolve_jars().broker if jar.name.startswith(("kafka-clients-", "slf4j-api-"))]
        port, token, self._process = launch_gateway(
            classpath=os.pathsep.join(jars),
            javaopts=["-Xmx256m", "-XX:+UseSerialGC"],
            java_path=java_executable(),
            die_on_exit=True,
            enable_auth=True,
            return_proc=True,
        )
        # With memory management, py4j would make a call for each object that is no longer referenced.
        parameters = GatewayParameters(
            port=port, auth_token=token, enable_memory_management=False, read_timeout=ANSWER_LIMIT_SECONDS
        )
        self._gateway = JavaGateway(gateway_parameters=parameters)
        # Looked up once, because every attribute access is a call.
        java, kafka = self._gateway.jvm.java, self._gateway.jvm.org.apache.kafka
        consumer, common = kafka.clients.consumer, kafka.common
        self._byte_buffer, self._optional = java.nio.ByteBuffer, java.util.Optional
        self._array_list, self._tree_map = java.util.ArrayList, java.util.TreeMap
        self._topic_partition = common.TopicPartition
        self._accessor = common.protocol.ByteBufferAccessor
        self._metadata_response = common.requests.MetadataResponse
        self._protocol = consumer.internals.ConsumerProtocol
        self._group_metadata = consumer.ConsumerGroupMetadata
        self._subscription = consumer.ConsumerPartitionAssignor.Subscription
        self._assignment = consumer.ConsumerPartitionAssignor.Assignment
        self._group_subscription = consumer.ConsumerPartitionAssignor.GroupSubscription
        self._assignors = {
            "range": consumer.RangeAssignor,
            "roundrobin": consumer.RoundRobinAssignor,
            "sticky": consumer.StickyAssignor,
            "cooperative-sticky": consumer.CooperativeStickyAssignor,
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._gateway.close()
        # The JVM ends when its standard input is closed.
        self._process.stdin.close()
        try:
            self._process.wait(END_LIMIT_SECONDS)
        finally:
            self._process.kill()

    # ----------------------------------------------------------------------------------------------------------
    # ConsumerProtocol

    def encode_subscription(self, subscription: Subscription, version: int) -> bytes:
        """Encode a subscription."""
        with _java_exceptions():
            built = self._subscription(
                self._list(subscription.topics),
                self._buffer(subscription.user_data),
                self._partitions(subscription.owned_partitions),
                subscription.generation_id,
                self._optional.ofNullable(subscription.rack_id),
            )
            return _bytes(self._protocol.serializeSubscription(built, version))

    def encode_assignment(self, assignment: Assignment, version: int) -> bytes:
        """Encode an assignment."""
        with _java_exceptions():
            built = self._assignment(self._partitions(assignment.partitions), self._buffer(assignment.user_data))
            return _bytes(self._protocol.serializeAssignment(built, version))

    def reencoded_subscription(self, data: bytes, version: int) -> bytes:
        """Decode and encode again."""
        with _java_exceptions():
            read = self._protocol.deserializeSubscription(self._buffer(data))
            return _bytes(self._protocol.serializeSubscription(read, version))

    def reencoded_assignment(self, data: bytes, version: int) -> bytes:
        """Decode and encode again."""
        with _java_exceptions():
            read = self._protocol.deserializeAssignment(self._buffer(data))
            return _bytes(self._protocol.serializeAssignment(read, version))

    def subscribed_topics(self, metadata: bytes) -> set[str]:
        """Return the topics that a coordinator decodes from a member's metadata."""
        with _java_exceptions():
            buffer = self._buffer(metadata)
            self._protocol.deserializeVersion(buffer)
            return set(self._protocol.deserializeSubscription(buffer, 0).topics())

    # ----------------------------------------------------------------------------------------------------------
    # Assignors

    def user_data(self, assignor_name: str, assignment: Assignment, generation_id: int) -> bytes | None:
        """Return the user data of a consumer's next subscription after an assignment."""
        assignor = self._assignors[assignor_name]()
        java_assignment = self._assignment(self._partitions(assignment.partitions), self._buffer(assignment.user_data))
        assignor.onAssignment(
            java_assignment, self._group_metadata("group", generation_id, "member", self._optional.empty())
        )
        user_data = assignor.subscriptionUserData(None)
        return None if user_data is None else _bytes(user_data)

    def assign(
        self, assignor_name: str, topics: Mapping[str, TopicMetadata], members: Iterable[tuple[str, str | None, bytes]]
    ) -> Assigned:
        """Run an assignor. Members are given by member id, instance id and encoded subscription.

        The assignor gets them in the order of their ids. Topics and ids must not contain commas, braces or brackets.
        """
        with _java_exceptions():
            subscriptions = self._tree_map()
            for member_id, instance_id, encoded in members:
                subscription = self._protocol.deserializeSubscription(self._buffer(encoded))
                if instance_id is not None:
                    subscription.setGroupInstanceId(self._optional.of(instance_id))
                subscriptions.put(member_id, subscription)
            group = self._group_subscription(subscriptions)
            text = self._assignors[assignor_name]().assign(self._cluster(topics), group).groupAssignment().toString()
        return {
            member_id: [_partition(name) for name in names.split(", ") if name]
            for member_id, names in _MEMBER_IN_TEXT.findall(text)
        }

    def _cluster(self, topics: Mapping[str, TopicMetadata]) -> Any:
        accessor = self._accessor(self._buffer(_metadata_response(topics)))
        return self._metadata_response.parse(accessor, MetadataResponse.__version__).buildCluster()

    def _buffer(self, data: bytes | None) -> Any:
        return None if data is None else self._byte_buffer.wrap(data)

    def _list(self, elements: Iterable[Any]) -> Any:
        elements_in_java = self._array_list()
        for element in elements:
            elements_in_java.add(element)
        return elements_in_java

    def _partitions(self, partitions: Iterable[TopicPartition]) -> Any:
        return self._list(self._topic_partition(*partition) for partition in partitions)


def _metadata_response(topics: Mapping[str, TopicMetadata]) -> bytes:
    """Encode a metadata response with these topics, one broker for each rack, and one broker without a rack."""
    racks = [None, *sorted({rack for topic in topics.values() for racks in topic.racks for rack in racks})]
    broker_ids = {rack: BrokerId(i) for i, rack in enumerate(racks)}
    response = MetadataResponse(
        throttle_time=i32Timedelta.parse(timedelta()),
        brokers=tuple(
            MetadataResponseBroker(node_id=broker_id, host="localhost", port=i32(9092), rack=rack)
            for rack, broker_id in broker_ids.items()
        ),
        topics=tuple(
            MetadataResponseTopic(
                error_code=ErrorCode.none,
                name=TopicName(name),
                topic_id=None,
                partitions=tuple(
                    MetadataResponsePartition(
                        error_code=ErrorCode.none,
                        partition_index=i32(partition),
                        leader_id=BrokerId(0),
                        replica_nodes=tuple(broker_ids[rack] for rack in racks_of_partition or [None]),
                    )
                    for partition, racks_of_partition in enumerate(topic.racks or [frozenset()] * topic.partitions)
                ),
            )
            for name, topic in topics.items()
        ),
    )
    buffer = io.BytesIO()
    _write_metadata(buffer, response)
    return buffer.getvalue()


def _partition(name: str) -> TopicPartition:
    topic, number = name.rsplit("-", 1)
    return TopicPartition(topic, int(number))


def _bytes(buffer: Any) -> bytes:
    return bytes(buffer.array())


@contextmanager
def _java_exceptions() -> Iterator[None]:
    try:
        yield
    except Py4JJavaError as error:
        raise JavaException(error.java_exception.getClass().getSimpleName()) from error
