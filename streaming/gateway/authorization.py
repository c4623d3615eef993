"""Who may do what with a group, decided by the cluster's own authorizer; what it said is remembered for a moment.

The broker is asked over the client's own connection, so that it decides about the very principal that it has
authenticated there. A cluster without an authorizer allows everything, and is asked no more than that.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from streaming.gateway import permissions
from streaming.gateway.permissions import Operation, TopicAccess
from streaming.gateway.request import Caller
from streaming.gateway.topic_catalog import TopicCatalog
from streaming.gateway.upstream import Forward, UpstreamLost, forward_upstream

__all__ = ["Authorizer"]

log = logging.getLogger(__name__)

DECISION_SECONDS = 5.0
"""For how long a changed rule may go unnoticed."""
AUTHORIZER_SECONDS = 30.0
"""For how long it may go unnoticed that the brokers were given an authorizer: they are restarted for it."""
MOST_REMEMBERED = 100_000

ALL_GROUP_OPERATIONS = sum(1 << code for code in (3, 6, 8, 10, 11))
"""Read, Delete, Describe, DescribeConfigs, AlterConfigs: what a broker without an authorizer tells of a group."""

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")


class _Memory(Generic[KeyT, ValueT]):
    """Values that count for a while."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._values: OrderedDict[KeyT, tuple[float, ValueT]] = OrderedDict()

    def get(self, key: KeyT) -> ValueT | None:
        until, value = self._values.get(key, (0.0, None))
        return value if time.monotonic() < until else None

    def put(self, key: KeyT, value: ValueT) -> ValueT:
        self._values[key] = (time.monotonic() + self._seconds, value)
        self._values.move_to_end(key)
        if len(self._values) > MOST_REMEMBERED:
            self._values.popitem(last=False)
        return value


class Authorizer:
    """What the clients of the gateway may do. To be asked where a handler runs, see :func:`forward_upstream`.

    Every question may raise :class:`UpstreamLost`, and :class:`CoordinatorNotAvailable` that about topics.
    """

    def __init__(self, topics: TopicCatalog, forward: Forward = forward_upstream) -> None:
        self._topics = topics
        self._forward = forward
        self._has_authorizer: bool | None = None
        self._ask_again_at = 0.0
        self._decisions: _Memory[tuple[str, str, str, str], bool] = _Memory(DECISION_SECONDS)
        self._access: _Memory[tuple[str, str], TopicAccess] = _Memory(DECISION_SECONDS)

    async def allows(self, caller: Caller, operation: Operation, group_id: str) -> bool:
        """Whether the caller may read, delete or describe a group."""
        if not await self._decides():
            return True
        if operation is Operation.DESCRIBE:
            return (await self._describable(caller, [group_id]))[0]
        ask = permissions.may_read_group if operation is Operation.READ else permissions.may_delete_group
        return await self._decision(caller, operation.name, group_id, lambda: ask(self._forward, group_id))

    async def allows_transaction(self, caller: Caller, transactional_id: str, group_id: str) -> bool:
        """Whether the caller may write with a transactional id."""
        if not await self._decides():
            return True

        def ask() -> Awaitable[bool]:
            return permissions.may_write_transactionally(self._forward, transactional_id, group_id)

        return await self._decision(caller, "transaction", transactional_id, ask)

    async def describable(self, caller: Caller, group_ids: Sequence[str]) -> list[bool]:
        """Whether the caller may describe each of the groups, or the cluster and with it all of them."""
        if not group_ids or not await self._decides():
            return [True] * len(group_ids)
        sees_all = await self._decision(caller, "cluster", "", lambda: permissions.may_describe_cluster(self._forward))
        return [True] * len(group_ids) if sees_all else await self._describable(caller, group_ids)

    async def operations_on_group(self, caller: Caller, group_id: str) -> int:
        """What the caller may do with a group, packed as in DescribeGroups (KIP-430).

        Where there is an authorizer, without what concerns configurations: groups have none here.
        """
        if not await self._decides():
            return ALL_GROUP_OPERATIONS
        operations = (Operation.READ, Operation.DELETE, Operation.DESCRIBE)
        return sum([op.bit for op in operations if await self.allows(caller, op, group_id)])

    async def topics(self, caller: Caller, names: Iterable[str]) -> Mapping[str, TopicAccess]:
        """The topics as the caller may see them."""
        if not await self._decides():
            counts = await self._topics.partition_counts(names)
            return {name: TopicAccess(count) for name, count in counts.items()}
        found: dict[str, TopicAccess] = {}
        to_ask = []
        for name in dict.fromkeys(names):
            known = self._access.get((caller.principal, name))
            if known is None:
                to_ask.append(name)
            else:
                found[name] = known
        if to_ask:
            asked = await permissions.topic_access(self._forward, to_ask)
            for name in to_ask:
                found[name] = asked.get(name, TopicAccess(0))
                if found[name].partitions:
                    self._access.put((caller.principal, name), found[name])
        return found

    async def describable_topics(self, caller: Caller, names: Collection[str]) -> Collection[str]:
        """Those of the topics that the caller may describe, whether they exist or not."""
        if not names or not await self._decides():
            return names
        return {name for name, access in (await self.topics(caller, names)).items() if access.may_describe}

    async def _decides(self) -> bool:
        now = time.monotonic()
        if self._has_authorizer is None or now >= self._ask_again_at:
            self._ask_again_at = now + AUTHORIZER_SECONDS
            try:
                self._has_authorizer = await permissions.has_authorizer(self._forward)
            except UpstreamLost:
                if self._has_authorizer is None:
                    raise
                log.warning("no broker says whether there is an authorizer now")
        return bool(self._has_authorizer)

    async def _describable(self, caller: Caller, group_ids: Sequence[str]) -> list[bool]:
        unknown = [
            group_id
            for group_id in dict.fromkeys(group_ids)
            if self._decisions.get(_key(caller, Operation.DESCRIBE.name, group_id)) is None
        ]
        answers: dict[str, bool] = {}
        if unknown:
            answers = dict(zip(unknown, await permissions.describable_groups(self._forward, unknown), strict=True))
            for group_id, allowed in answers.items():
                self._decisions.put(_key(caller, Operation.DESCRIBE.name, group_id), allowed)
        known = (self._decisions.get(_key(caller, Operation.DESCRIBE.name, group_id)) for group_id in group_ids)
        return [bool(answers.get(group_id, was)) for group_id, was in zip(group_ids, known, strict=True)]

    async def _decision(self, caller: Caller, what: str, name: str, ask: Callable[[], Awaitable[bool]]) -> bool:
        key = _key(caller, what, name)
        known = self._decisions.get(key)
        return self._decisions.put(key, await ask()) if known is None else known


def _key(caller: Caller, what: str, name: str) -> tuple[str, str, str, str]:
    return caller.principal, caller.host, what, name
