"""Looks groups up at the brokers' own group coordinators, as the gateway."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol

from kio.schema.api_versions.v0.request import ApiVersionsRequest
from kio.schema.consumer_group_describe.v0.request import ConsumerGroupDescribeRequest
from kio.schema.describe_groups.v5.request import DescribeGroupsRequest
from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.schema.offset_fetch.v8.request import OffsetFetchRequest, OffsetFetchRequestGroup
from kio.schema.types import GroupId
from kio.static.primitive import i8
from kio.static.protocol import RequestPayload

from coordinator_logic.messages import PartitionToCommit, TopicToCommit
from streaming.gateway.security.internal_topics.rules import OFFSETS_TOPIC
from streaming.gateway.security.topic_catalog import FoundTopic
from streaming.gateway.wire.brokers import Address
from streaming.gateway.wire.forwarding import Forward

GROUP_KEY_TYPE = i8(0)
WITHOUT_MEMBERS = frozenset({"Empty", "Dead"})
DEAD = "Dead"
"""The state of a group that is not there, and of one that is not classic."""


class Brokers(Protocol):
    """The gateway's own connections to the cluster."""

    async def topics(self, names: Sequence[str], /) -> Iterable[FoundTopic]:
        """The topics with these names; one that does not exist has an error."""

    async def ask_any(self, request: RequestPayload, /) -> Any:
        """The response of any broker."""

    def connection(self, address: Address, /) -> AbstractAsyncContextManager[Forward]:
        """Connect to one broker."""


class BrokerGroup(NamedTuple):
    """A group at the brokers' coordinator; one without offsets and members need not exist there."""

    offsets: list[TopicToCommit]
    has_members: bool


class Unanswered(NamedTuple):
    """What prevents an answer about a group. ``is_denied``: the gateway's principal lacks a right."""

    reason: str
    is_denied: bool = False


NOTHING = BrokerGroup([], has_members=False)

Found = Mapping[str, BrokerGroup | Unanswered]


class BrokerGroups:
    """Asks the coordinators. The gateway's principal needs DESCRIBE on the groups, and on the topics of their offsets.

    A broker leaves out the offsets of a topic that the principal may not describe, and does not say so. Brokers answer
    these requests since Kafka 3.0.
    """

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        self._have_groups = False

    async def find(self, group_ids: Sequence[str]) -> Found:
        """What the brokers say of each group, asked one after the other over one connection to each coordinator.

        Raises whatever a request can raise if no broker says who the coordinators are.
        """
        if not await self._may_have_groups():
            return dict.fromkeys(group_ids, NOTHING)
        found: dict[str, BrokerGroup | Unanswered] = {}
        request = FindCoordinatorRequest(key_type=GROUP_KEY_TYPE, coordinator_keys=tuple(group_ids))
        by_coordinator: dict[Address, list[str]] = {}
        for each in (await self._brokers.ask_any(request)).coordinators:
            if each.error_code is ErrorCode.none:
                by_coordinator.setdefault(Address(each.host, each.port), []).append(each.key)
            else:
                found[each.key] = _unanswered(each.error_code)
        for of_one in await asyncio.gather(*(self._ask(*each) for each in by_coordinator.items())):
            found |= of_one
        return found

    async def _ask(self, address: Address, group_ids: Sequence[str]) -> dict[str, BrokerGroup | Unanswered]:
        """Ask one coordinator; one that does not answer leaves the groups of the others alone."""
        found: dict[str, BrokerGroup | Unanswered] = {}
        try:
            async with self._brokers.connection(address) as send:
                describes = await _describes_consumer_groups(send)
                for group_id in group_ids:
                    found[group_id] = await _find(send, group_id, describes_consumer_groups=describes)
        # It is away, or answers what no broker should: either leaves its other groups undecided.
        except Exception as failure:
            return dict.fromkeys(group_ids, Unanswered(f"{address.host}:{address.port}: {failure!r}")) | found
        return found

    async def _may_have_groups(self) -> bool:
        """Whether any group can be there. To ask for the coordinator of one would create the topic of the offsets."""
        if not self._have_groups:
            (topic,) = await self._brokers.topics([OFFSETS_TOPIC])
            self._have_groups = topic.error_code is not ErrorCode.unknown_topic_or_partition
        return self._have_groups


async def _describes_consumer_groups(send: Forward) -> bool:
    """Whether the broker knows groups of KIP-848."""
    response: Any = await send(ApiVersionsRequest())
    return any(api.api_key == ConsumerGroupDescribeRequest.__api_key__ for api in response.api_keys)


async def _find(send: Forward, group_id: str, *, describes_consumer_groups: bool) -> BrokerGroup | Unanswered:
    """Look for members first: what they committed before they left is then among the offsets."""
    key = GroupId(group_id)
    described: Any = await send(DescribeGroupsRequest(groups=(key,), include_authorized_operations=False))
    (group,) = described.groups
    state = group.group_state
    if group.error_code is not ErrorCode.none:
        return _unanswered(group.error_code)
    if state == DEAD and describes_consumer_groups:
        described = await send(ConsumerGroupDescribeRequest(group_ids=(key,), include_authorized_operations=False))
        (group,) = described.groups
        if group.error_code is ErrorCode.none:
            state = group.group_state
        elif group.error_code is not ErrorCode.group_id_not_found:
            return _unanswered(group.error_code)
    if state not in WITHOUT_MEMBERS or group.members:
        return BrokerGroup([], has_members=True)
    request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=key, topics=None),), require_stable=True)
    fetched: Any = await send(request)
    return _offsets(fetched.groups[0])


def _offsets(fetched: Any) -> BrokerGroup | Unanswered:
    if fetched.error_code is ErrorCode.group_id_not_found:
        # A share group keeps no offsets of this kind.
        return NOTHING
    if fetched.error_code is not ErrorCode.none:
        return _unanswered(fetched.error_code)
    topics = []
    for topic in fetched.topics:
        for partition in topic.partitions:
            if partition.error_code is not ErrorCode.none:
                return _unanswered(partition.error_code)
        committed = [
            PartitionToCommit(
                each.partition_index,
                each.committed_offset,
                each.committed_leader_epoch,
                committed_metadata=each.metadata,
            )
            for each in topic.partitions
            if each.committed_offset >= 0
        ]
        if committed:
            topics.append(TopicToCommit(topic.name, committed))
    return BrokerGroup(topics, has_members=False)


def _unanswered(error: ErrorCode) -> Unanswered:
    return Unanswered(error.name.upper(), error is ErrorCode.group_authorization_failed)
