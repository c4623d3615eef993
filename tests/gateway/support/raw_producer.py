"""A transactional producer without a library: the test decides when it sends which request through which gateway."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from kio.index import load_entity_module, load_request_schema
from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.schema.offset_fetch.v7.request import OffsetFetchRequest, OffsetFetchRequestTopic
from kio.schema.types import GroupId, ProducerId, TopicName, TransactionalId
from kio.static.constants import EntityType
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64
from kio.static.protocol import RequestPayload

from tests.gateway.support.wire_client import WireClient
from tests.support.waiting import LIMIT_SECONDS

LONG_MS = 600_000
"""A transaction timeout that no test reaches."""

GROUP, TRANSACTION = 0, 1
INIT_PRODUCER_ID, ADD_OFFSETS_TO_TXN, END_TXN = 22, 25, 26
FIRST_END_TXN_VERSION_WITH_EPOCH = 5

RETRIABLE = frozenset(
    {
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.coordinator_not_available,
        ErrorCode.not_coordinator,
        ErrorCode.concurrent_transactions,
    }
)
"""Errors after which every producer retries."""


def find_coordinator(client: WireClient, key: str, key_type: int) -> None:
    """Retry until a coordinator is found: a new broker creates its coordinators' topic at the first request."""
    request = FindCoordinatorRequest(key_type=i8(key_type), coordinator_keys=(key,))
    deadline = time.monotonic() + LIMIT_SECONDS
    while (answer := client.ask(request)).coordinators[0].error_code is not ErrorCode.none:
        assert time.monotonic() < deadline, answer
        time.sleep(0.02)


def retried(ask: Callable[[], Any], error_of: Callable[[Any], ErrorCode | None]) -> Any:
    """Repeat a request until its error is not retriable, and return that response."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while error_of(answer := ask()) in RETRIABLE:
        assert time.monotonic() < deadline, answer
        time.sleep(0.02)
    return answer


class RawProducer:
    """A producer whose transactions commit a group's offset of partition 0 of one topic."""

    def __init__(self, port: int, transactional_id: str, group_id: str, topic: str, timeout_ms: int = LONG_MS) -> None:
        self.transactional_id = TransactionalId(transactional_id)
        self.group_id = GroupId(group_id)
        self.topic = topic
        self.timeout = i32Timedelta.parse(timedelta(milliseconds=timeout_ms))
        self.producer_id = ProducerId(-1)
        self.producer_epoch = i16(-1)
        self.port = port
        self._client: WireClient | None = None

    def go_to(self, port: int) -> None:
        """Continue through another gateway."""
        self.close()
        self.port = port

    def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.close()
            self._client = None

    @property
    def client(self) -> WireClient:
        """The connection to the gateway."""
        if self._client is None:
            self._client = WireClient(self.port)
        return self._client

    def ask(self, payload: RequestPayload) -> Any:
        """Send a request, and retry it after retriable errors."""
        return retried(lambda: self.client.ask(payload), lambda answer: getattr(answer, "error_code", None))

    def init(self, version: int = 4) -> ErrorCode:
        """InitProducerId: fence earlier producers with this transactional id."""
        find_coordinator(self.client, self.transactional_id, TRANSACTION)
        request: Any = load_request_schema(INIT_PRODUCER_ID, version)
        answer = self.ask(request(transactional_id=self.transactional_id, transaction_timeout=self.timeout))
        self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch
        error: ErrorCode = answer.error_code
        return error

    def add_offsets_request(self, version: int = 3) -> RequestPayload:
        """AddOffsetsToTxn for the group."""
        request: Any = load_request_schema(ADD_OFFSETS_TO_TXN, version)
        return request(  # type: ignore[no-any-return]
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            group_id=self.group_id,
        )

    def add_offsets(self, version: int = 3) -> ErrorCode:
        """AddOffsetsToTxn: add the group to the transaction."""
        error: ErrorCode = self.ask(self.add_offsets_request(version)).error_code
        return error

    def commit_offset(self, offset: int, version: int = 3) -> ErrorCode:
        """TxnOffsetCommit; the error of the one partition."""
        return self.commit_offset_at(self.client, offset, version)

    def commit_offset_at(self, client: WireClient, offset: int, version: int = 3) -> ErrorCode:
        """TxnOffsetCommit over any connection; the error of the one partition."""
        module: Any = load_entity_module("txn_offset_commit", version, EntityType.request)
        partition = module.TxnOffsetCommitRequestPartition(
            partition_index=i32(0), committed_offset=i64(offset), committed_metadata=""
        )
        topic = module.TxnOffsetCommitRequestTopic(name=TopicName(self.topic), partitions=(partition,))
        request = module.TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=self.group_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            topics=(topic,),
        )

        def error_of(answer: Any) -> ErrorCode:
            ((error,),) = ([partition.error_code for partition in topic.partitions] for topic in answer.topics)
            return error  # type: ignore[no-any-return]

        return error_of(retried(lambda: client.ask(request), error_of))

    def begin(self, offset: int) -> None:
        """Start a transaction and commit an offset in it."""
        assert self.add_offsets() is ErrorCode.none
        assert self.commit_offset(offset) is ErrorCode.none

    def end_request(self, committed: bool, version: int = 3) -> RequestPayload:
        """EndTxn."""
        request: Any = load_request_schema(END_TXN, version)
        return request(  # type: ignore[no-any-return]
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            committed=committed,
        )

    def end(self, committed: bool, version: int = 3) -> ErrorCode:
        """End the transaction; from version 5 on, go on with the producer id and epoch of the response."""
        answer = self.ask(self.end_request(committed, version))
        error: ErrorCode = answer.error_code
        if version >= FIRST_END_TXN_VERSION_WITH_EPOCH and error is ErrorCode.none:
            self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch
        return error

    def committed_offset(self, port: int | None = None, *, require_stable: bool = True) -> int | str:
        """The group's committed offset, -1 for none, or the name of the partition's error."""
        topic = OffsetFetchRequestTopic(name=TopicName(self.topic), partition_indexes=(i32(0),))
        request = OffsetFetchRequest(group_id=self.group_id, topics=(topic,), require_stable=require_stable)
        with WireClient(port or self.port) as client:
            answer = retried(lambda: client.ask(request), lambda answer: answer.error_code)
        assert answer.error_code is ErrorCode.none
        (partition,) = answer.topics[0].partitions
        if partition.error_code is not ErrorCode.none:
            return partition.error_code.name  # type: ignore[no-any-return]
        return partition.committed_offset  # type: ignore[no-any-return]
