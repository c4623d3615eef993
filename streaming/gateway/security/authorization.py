"""Authorizes group operations by the cluster's own authorizer, and caches its decisions for a short time.

Requests to the broker use the client's own connection, so the broker decides about the principal that it authenticated
there. A cluster without an authorizer allows everything; only whether it has one is requested then.
"""

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from streaming.gateway.security import permissions
from streaming.gateway.security.permissions import HIDDEN, Operation, TopicAccess, TopicsOfIds
from streaming.gateway.security.topic_catalog import RENEWAL_SECONDS, TopicCatalog
from streaming.gateway.wire.client_request import Caller
from streaming.gateway.wire.forwarding import Forward, UpstreamLost, forward_upstream
from streaming.gateway.wire.loop_share import loop_time

log = logging.getLogger(__name__)

DECISION_TTL_SECONDS = 5.0
"""How long a decision is cached: a changed ACL takes effect after at most this time."""
AUTHORIZER_TTL_SECONDS = 30.0
"""How long it is cached whether there is an authorizer. Brokers must restart to get one, so it rarely changes."""
NAME_TTL_SECONDS = 30.0
"""How long the name of a topic id is cached, whoever asks: what a caller may do is asked by name. Names do not change,
but a topic can be deleted."""
MAX_CACHED_DECISIONS = 100_000

GROUP_OPERATIONS = (
    Operation.READ,
    Operation.DELETE,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
"""The operations on a group; a broker without an authorizer reports all of them."""

GROUP_PROBES: Mapping[Operation, Callable[[Forward, str], Awaitable[bool]]] = {
    Operation.READ: permissions.may_read_group,
    Operation.DELETE: permissions.may_delete_group,
    Operation.DESCRIBE_CONFIGS: permissions.may_describe_group_configs,
    Operation.ALTER_CONFIGS: permissions.may_alter_group_configs,
}
"""What asks the broker about a single group. Several groups are described at once."""

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")


class _ExpiringCache(Generic[KeyT, ValueT]):
    """Values that expire ``seconds`` after they were put."""

    def __init__(self, seconds: float, is_current: Callable[[float, float], bool] | None = None) -> None:
        """``is_current``: whether a value that was put at a time may be used for so many seconds."""
        self._seconds = seconds
        self._is_current = is_current or _is_younger
        self._values: OrderedDict[KeyT, tuple[float, ValueT]] = OrderedDict()

    def get(self, key: KeyT, max_age: float | None = None) -> ValueT | None:
        put_at, value = self._values.get(key, (float("-inf"), None))
        limit = self._seconds if max_age is None else min(self._seconds, max_age)
        return value if self._is_current(put_at, limit) else None

    def split(self, keys: Mapping[str, KeyT], max_age: float | None = None) -> tuple[dict[str, ValueT], list[str]]:
        """Return the values by name, and the names without one; ``keys`` has the key of each name."""
        values = {name: self.get(key, max_age) for name, key in keys.items()}
        found = {name: value for name, value in values.items() if value is not None}
        return found, [name for name in values if name not in found]

    def put(self, key: KeyT, value: ValueT, put_at: float | None = None) -> ValueT:
        self._values[key] = (loop_time() if put_at is None else put_at, value)
        self._values.move_to_end(key)
        if len(self._values) > MAX_CACHED_DECISIONS:
            self._values.popitem(last=False)
        return value


class Authorizer:
    """Decides what the gateway's clients may do. Only handlers may call it, see :func:`forward_upstream`.

    Every method may raise :class:`UpstreamLost`; those about topics may raise :class:`CoordinatorNotAvailable`.

    topics: the cluster's topics, for a cluster without an authorizer.
    forward: sends a request to the broker as the client.
    decision_ttl: seconds that a decision is cached.
    hides: whether the gateway hides a topic from a principal, whatever the brokers allow.
    """

    def __init__(
        self,
        topics: TopicCatalog,
        forward: Forward = forward_upstream,
        decision_ttl: float = DECISION_TTL_SECONDS,
        hides: Callable[[str, str], bool] = lambda _principal, _topic: False,
    ) -> None:
        self._topics = topics
        self._forward = forward
        self._hides = hides
        self._has_authorizer: bool | None = None
        self._recheck_at = 0.0
        self._decisions: _ExpiringCache[tuple[str, str, str, str], bool] = _ExpiringCache(decision_ttl)
        self._access: _ExpiringCache[tuple[str, str, str], TopicAccess] = _ExpiringCache(
            decision_ttl, topics.is_current
        )
        self._names: _ExpiringCache[str, str] = _ExpiringCache(NAME_TTL_SECONDS)

    async def allows(self, caller: Caller, operation: Operation, group_id: str) -> bool:
        """Whether the caller may do something with a group."""
        if not await self._is_enabled():
            return True
        if operation is Operation.DESCRIBE:
            return (await self._describable(caller, [group_id]))[0]
        probe = GROUP_PROBES[operation]
        return await self._decision(caller, operation.name, group_id, lambda: probe(self._forward, group_id))

    async def allows_transaction(self, caller: Caller, transactional_id: str) -> bool:
        """Whether the caller may write with a transactional id."""
        if not await self._is_enabled():
            return True
        probe = permissions.may_write_transactionally
        what = "transaction"
        return await self._decision(caller, what, transactional_id, lambda: probe(self._forward, transactional_id))

    async def describable(self, caller: Caller, group_ids: Sequence[str]) -> list[bool]:
        """Whether the caller may describe each group. Describe on the cluster is permission for every group."""
        if not group_ids or not await self._is_enabled():
            return [True] * len(group_ids)
        sees_all = await self._decision(caller, "cluster", "", lambda: permissions.may_describe_cluster(self._forward))
        return [True] * len(group_ids) if sees_all else await self._describable(caller, group_ids)

    async def operations_on_group(self, caller: Caller, group_id: str) -> int:
        """Return the operations that the caller may do on a group, as the bit field of DescribeGroups (KIP-430)."""
        return sum([op.bit for op in GROUP_OPERATIONS if await self.allows(caller, op, group_id)])

    async def topics(
        self, caller: Caller, names: Iterable[str], max_age: float | None = None
    ) -> Mapping[str, TopicAccess]:
        """Return what the caller may do with each topic, as of ``max_age`` seconds ago or later."""
        names = dict.fromkeys(names)
        hidden = {name: HIDDEN for name in names if self._hides(caller.principal, name)}
        shown = [name for name in names if name not in hidden]
        if not await self._is_enabled():
            existing = await self._topics.find(shown, max_age)
            accesses = {
                name: TopicAccess(topic.partitions, topic_id=topic.topic_id) for name, topic in existing.items()
            }
            return accesses | hidden
        keys = {name: (caller.principal, caller.host, name) for name in shown}
        found, uncached = self._access.split(keys, max_age)
        if uncached:
            asked_at = loop_time()
            probed = await permissions.topic_access(self._forward, uncached)
            for name in uncached:
                found[name] = probed.get(name, TopicAccess(0))
                self._remember(keys[name], found[name], asked_at)
        return found | hidden

    def _remember(self, key: tuple[str, str, str], access: TopicAccess, asked_at: float) -> None:
        before = self._access.get(key)
        if access.partitions:
            self._access.put(key, access, asked_at)
        if before is not None and (before.topic_id, before.partitions) != (access.topic_id, access.partitions):
            self._topics.changed()

    async def fitting_topics(
        self,
        caller: Caller,
        names: Iterable[str],
        fits: Callable[[str, TopicAccess], bool],
        max_age: float | None = None,
    ) -> Mapping[str, TopicAccess]:
        """Return what the caller may do with each topic; where what is cached does not fit, the brokers are asked.

        ``max_age`` is that of :meth:`topics`.
        """
        accesses = await self.topics(caller, names, max_age)
        misfits = [name for name, access in accesses.items() if access.may_describe and not fits(name, access)]
        if not misfits:
            return accesses
        return {**accesses, **await self.topics(caller, misfits, RENEWAL_SECONDS)}

    async def topics_of_ids(self, caller: Caller, topic_ids: Iterable[str]) -> TopicsOfIds:
        """Return the names of topics by id, and which ids are hidden from the caller; an empty id is unknown."""
        names, uncached = self._names.split({topic_id: topic_id for topic_id in topic_ids if topic_id})
        hidden: set[str] = set()
        if uncached:
            if await self._is_enabled():
                found = await permissions.topics_of_ids(self._forward, uncached)
            else:
                found = TopicsOfIds(await self._topics.names_of(uncached), ())
            for topic_id, name in found.names.items():
                self._names.put(topic_id, name)
            names |= found.names
            hidden |= set(found.hidden)
        hidden |= {topic_id for topic_id, name in names.items() if self._hides(caller.principal, name)}
        return TopicsOfIds({topic_id: name for topic_id, name in names.items() if topic_id not in hidden}, hidden)

    async def describable_topics(self, caller: Caller, names: Collection[str]) -> Collection[str]:
        """Return the topics that the caller may describe, whether they exist or not."""
        if not names or not await self._is_enabled():
            return [name for name in names if not self._hides(caller.principal, name)]
        return {name for name, access in (await self.topics(caller, names)).items() if access.may_describe}

    async def _is_enabled(self) -> bool:
        """Return whether the cluster has an authorizer."""
        now = loop_time()
        if self._has_authorizer is None or now >= self._recheck_at:
            self._recheck_at = now + AUTHORIZER_TTL_SECONDS
            try:
                self._has_authorizer = await permissions.has_authorizer(self._forward)
            except UpstreamLost:
                if self._has_authorizer is None:
                    raise
                log.warning("cannot refresh whether the cluster has an authorizer: the broker is unreachable")
        return bool(self._has_authorizer)

    async def _describable(self, caller: Caller, group_ids: Sequence[str]) -> list[bool]:
        keys = {group_id: _key(caller, Operation.DESCRIBE.name, group_id) for group_id in group_ids}
        allowed, uncached = self._decisions.split(keys)
        if uncached:
            probed = await permissions.describable_groups(self._forward, uncached)
            for group_id, is_allowed in zip(uncached, probed, strict=True):
                allowed[group_id] = self._decisions.put(keys[group_id], is_allowed)
        return [allowed[group_id] for group_id in group_ids]

    async def _decision(self, caller: Caller, what: str, name: str, probe: Callable[[], Awaitable[bool]]) -> bool:
        key = _key(caller, what, name)
        cached = self._decisions.get(key)
        return self._decisions.put(key, await probe()) if cached is None else cached


def _is_younger(put_at: float, seconds: float) -> bool:
    return loop_time() - put_at < seconds


def _key(caller: Caller, what: str, name: str) -> tuple[str, str, str, str]:
    return caller.principal, caller.host, what, name
