"""Lookups of topics that callers share: what several wait for goes to the brokers in one request."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from streaming.client.errors import CoordinatorNotAvailable
from streaming.contract.rights.refusals import not_allowed
from streaming.contract.rights.table import Operation
from streaming.gateway.wire.brokers import ClusterUnreachable
from streaming.gateway.wire.loop_share import loop_time

NOT_FOUND = frozenset(
    {ErrorCode.unknown_topic_or_partition, ErrorCode.unknown_topic_id, ErrorCode.invalid_topic_exception}
)


class FoundTopic(NamedTuple):
    """The brokers' metadata of a topic.

    ``name`` is empty for an unknown id. ``topic_id``, in Kafka's text form, is empty if the topic does not exist, or if
    the brokers give topics no ids, as before Kafka 2.8.
    """

    name: str
    topic_id: str
    partitions: int
    error_code: ErrorCode = ErrorCode.none

    @property
    def is_known(self) -> bool:
        """Whether the brokers say that the topic exists, or that it does not."""
        return self.error_code is ErrorCode.none or self.error_code in NOT_FOUND


class _Answer(NamedTuple):
    """What one request of the cluster found out: the topics, and why others are unknown, by key."""

    topics: Mapping[str, FoundTopic]
    failures: Mapping[str, str]


class SharedLookups:
    """Looks up topics by a key, their name or their id, with one request open at a time. For one event loop.

    ask: requests topics from the brokers, by keys. Raises :class:`ClusterUnreachable`.
    key_of: the key of a topic in the answer.
    learn: receives the topics of each answer by key, and the time of the loop when they were requested.
    problem: what a caller fails with, for a key, if the brokers do not answer.
    timeout: seconds that the brokers have to answer.
    """

    def __init__(
        self,
        ask: Callable[[list[str]], Awaitable[Iterable[FoundTopic]]],
        key_of: Callable[[FoundTopic], str],
        learn: Callable[[Mapping[str, FoundTopic], float], None],
        problem: Callable[[str], str],
        timeout: float,
    ) -> None:
        self._ask_brokers = ask
        self._key_of = key_of
        self._learn = learn
        self._problem = problem
        self._timeout = timeout
        self._waiting: set[str] = set()
        self._asking: asyncio.Task[_Answer] | None = None

    async def request(self, keys: Iterable[str]) -> dict[str, FoundTopic]:
        """Request topics together with those of all callers that wait; each exists, or is known not to.

        Raises :class:`CoordinatorNotAvailable` if the brokers do not say so of one of them.
        """
        found: dict[str, FoundTopic] = {}
        left = list(keys)
        try:
            async with asyncio.timeout(self._timeout):
                while left:
                    self._waiting.update(left)
                    if self._asking is None or self._asking.done():
                        self._asking = asyncio.get_running_loop().create_task(self._ask())
                    answer = await asyncio.shield(self._asking)
                    for key in left:
                        if key in answer.failures:
                            raise CoordinatorNotAvailable(f"{self._problem(key)}: {answer.failures[key]}")
                        if key in answer.topics:
                            found[key] = answer.topics[key]
                    left = [key for key in left if key not in found]
        except TimeoutError as failure:
            reason = f"{self._problem(left[0])}: no answer within {self._timeout:g} s"
            raise CoordinatorNotAvailable(reason) from failure
        return found

    async def _ask(self) -> _Answer:
        """Request the topics that wait now, from all callers."""
        asked, self._waiting = self._waiting, set()
        answer = await self._answer(asked)
        # Whoever asked for one of them in the meantime has waited for this answer.
        self._waiting -= asked
        return answer

    async def _answer(self, keys: set[str]) -> _Answer:
        asked_at = loop_time()
        try:
            async with asyncio.timeout(self._timeout):
                found = list(await self._ask_brokers(list(keys)))
        except (ClusterUnreachable, TimeoutError) as failure:
            return _Answer({}, dict.fromkeys(keys, repr(failure)))
        known = {self._key_of(topic): topic for topic in found if topic.is_known}
        self._learn(known, asked_at)
        errors: dict[str, str] = {self._key_of(topic): _in_words(topic) for topic in found}
        return _Answer(known, {key: errors.get(key, "no answer") for key in keys - known.keys()})


def _in_words(topic: FoundTopic) -> str:
    if topic.name and topic.error_code is ErrorCode.topic_authorization_failed:
        return not_allowed(Operation.DESCRIBE, topic.name)
    return topic.error_code.name
