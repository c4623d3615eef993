"""The reference broker: its settings, which our logic shares, its topics, and the versions under test."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta

import msgspec
from confluent_kafka.admin import AdminClient, NewTopic
from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v1.request import FindCoordinatorRequest
from kio.schema.heartbeat.v0.request import HeartbeatRequest
from kio.schema.init_producer_id.v1.request import InitProducerIdRequest
from kio.schema.types import GroupId
from kio.static.primitive import i8, i32, i32Timedelta

from coordinator_logic.config import CoordinatorConfig
from streaming.embedded.broker import EmbeddedBroker
from tests.oracle.sides.connection import Connections
from tests.support.waiting import LIMIT_SECONDS

TOPICS = ("oracle-a", "oracle-b")
PARTITIONS = 6
PAUSE_SECONDS = 0.05
GROUP_KEY, TRANSACTION_KEY = 0, 1

CONFIG = CoordinatorConfig(
    group_min_session_timeout_ms=500,
    group_max_session_timeout_ms=60_000,
    group_initial_rebalance_delay_ms=410,
    offset_metadata_max_bytes=64,
    offsets_retention_check_interval_ms=2**31 - 1,
    expiry_allowance_ms=0,
)
"""Short timeouts, so that a script of 30 requests takes seconds, and no allowance, as in a broker."""

SMALL_GROUPS = msgspec.structs.replace(CONFIG, group_max_size=2)
"""The same configuration with at most two members in a group."""

BROKER_PROPERTIES = {
    # One thread each, so that the broker handles requests in the order in which they are sent.
    "num.network.threads": "1",
    "num.io.threads": "1",
    "group.coordinator.threads": "1",
    # The coordinator writes at once instead of batching.
    "group.coordinator.append.linger.ms": "0",
    # Scripts send transactional commits without a transaction coordinator.
    "transaction.partition.verification.enable": "false",
}

VERSIONS: Mapping[str, range] = {
    "JoinGroup": range(10),
    "SyncGroup": range(6),
    "Heartbeat": range(5),
    "LeaveGroup": range(6),
    "OffsetCommit": range(2, 10),
    "OffsetFetch": range(1, 10),
    "DescribeGroups": range(7),
    "DeleteGroups": range(3),
    "OffsetDelete": range(1),
    "TxnOffsetCommit": range(6),
    "WriteTxnMarkers": range(1, 2),
}
"""The versions that both sides support."""

SHARED_KEYS = (
    "group.min.session.timeout.ms",
    "group.max.session.timeout.ms",
    "group.initial.rebalance.delay.ms",
    "group.max.size",
    "offset.metadata.max.bytes",
    "offsets.retention.minutes",
    "offsets.retention.check.interval.ms",
)


@contextmanager
def reference_broker(config: CoordinatorConfig = CONFIG) -> Iterator[EmbeddedBroker]:
    """Start a broker with our coordinator's configuration and the topics of the scripts."""
    settings = msgspec.to_builtins(config)
    properties = {**BROKER_PROPERTIES, **{key: str(settings[key]) for key in SHARED_KEYS}}
    with EmbeddedBroker(properties=properties) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        created = admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in TOPICS])
        for topic in created.values():
            topic.result(LIMIT_SECONDS)
        asyncio.run(await_coordinators(broker.bootstrap_servers))
        yield broker


async def await_coordinators(bootstrap_servers: str) -> None:
    """Wait until the coordinators of groups and of transactions are available.

    The broker creates their topics at the first request.
    """
    connections = Connections(bootstrap_servers)
    heartbeat = HeartbeatRequest(group_id=GroupId("first"), generation_id=i32(1), member_id="nobody")
    producer_id = InitProducerIdRequest(
        transactional_id=None, transaction_timeout=i32Timedelta.parse(timedelta(minutes=1))
    )
    try:
        async with asyncio.timeout(LIMIT_SECONDS):
            for key_type in (GROUP_KEY, TRANSACTION_KEY):
                await connections.ask(FindCoordinatorRequest(key="first", key_type=i8(key_type)))
            while (await connections.ask(heartbeat)).error_code is not ErrorCode.unknown_member_id:
                await asyncio.sleep(PAUSE_SECONDS)
                await connections.ask(FindCoordinatorRequest(key="first", key_type=i8(GROUP_KEY)))
            while (await connections.ask(producer_id)).error_code is not ErrorCode.none:
                await asyncio.sleep(PAUSE_SECONDS)
    finally:
        connections.close()
