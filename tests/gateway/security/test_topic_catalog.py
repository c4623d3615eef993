"""Partition counts for commits on a cluster without an authorizer."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest
from confluent_kafka import Uuid
from kio.schema.errors import ErrorCode

from streaming.client.errors import CoordinatorNotAvailable
from streaming.embedded.broker import EmbeddedBroker
from streaming.gateway.proxy.cluster import TOPICS_PER_REQUEST
from streaming.gateway.security import topic_catalog
from streaming.gateway.security.topic_catalog import FoundTopic, TopicCatalog
from tests.gateway.support.direct_handlers import cluster_of
from tests.support.garbage import leaked
from tests.support.topics import create_topic, unique
from tests.support.virtual_time import run_in_virtual_time
from tests.support.waiting import LIMIT_SECONDS

NO_BROKER = "127.0.0.1:1"


def run(work: Callable[[], Awaitable[Any]]) -> Any:
    async def limited() -> Any:
        async with asyncio.timeout(LIMIT_SECONDS):
            return await work()

    return asyncio.run(limited())


async def partition_counts(catalog: TopicCatalog, names: Sequence[str]) -> Mapping[str, int]:
    """Each topic's number of partitions, 0 for one that does not exist."""
    return {name: topic.partitions for name, topic in (await catalog.find(names)).items()}


class Brokers:
    """Answers for a cluster without topics once it may, and keeps what it was asked for."""

    def __init__(self, errors: Mapping[str, ErrorCode]) -> None:
        self.asked: list[set[str]] = []
        self.listed: list[str] = []
        self.listing_seconds = 0.0
        self.may_answer = asyncio.Event()
        self._errors = errors

    async def topics(self, names: Sequence[str]) -> list[FoundTopic]:
        self.asked.append(set(names))
        await self.may_answer.wait()
        missing = ErrorCode.unknown_topic_or_partition
        return [FoundTopic(name, "", 0, self._errors.get(name, missing)) for name in names]

    async def topics_by_id(self, topic_ids: Sequence[str]) -> list[FoundTopic]:
        return []

    async def all_topics(self) -> list[FoundTopic]:
        listed = [FoundTopic(name, f"id of {name}", 1, ErrorCode.none) for name in self.listed]
        await asyncio.sleep(self.listing_seconds)
        return listed


def test_topics_that_exist_have_partitions_and_all_others_have_none(broker: EmbeddedBroker) -> None:
    one, five = unique("one"), unique("five")
    create_topic(broker.bootstrap_servers, one, 1)
    create_topic(broker.bootstrap_servers, five, 5)
    missing = [unique("missing"), "", "not/valid", "nul\0", ".", "l" * 249, "l" * 250, "l" * 40_000]
    many = [f"{one}-{number}" for number in range(2 * TOPICS_PER_REQUEST)]
    catalog = TopicCatalog(cluster_of(broker.bootstrap_servers))
    counts = run(lambda: partition_counts(catalog, [one, *missing, *many, five, one]))
    assert counts == {one: 1, five: 5} | dict.fromkeys([*missing, *many], 0)


def test_a_hundred_lookups_leak_no_ids_of_topics(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_catalog, "EXISTING_TTL_SECONDS", 0.0)
    topic = unique("looked-up")
    create_topic(broker.bootstrap_servers, topic, 1)
    catalog = TopicCatalog(cluster_of(broker.bootstrap_servers))

    async def look_up() -> None:
        for _ in range(100):
            assert await partition_counts(catalog, [topic]) == {topic: 1}

    with leaked(Uuid) as left:
        run(look_up)
    assert left() < 10


def test_lookups_that_wait_share_the_next_request() -> None:
    async def look_up() -> list[set[str]]:
        brokers = Brokers({})
        catalog = TopicCatalog(brokers)
        first = asyncio.create_task(partition_counts(catalog, ["a"]))
        while not brokers.asked:
            await asyncio.sleep(0)
        others = [asyncio.create_task(partition_counts(catalog, names)) for names in (["a"], ["b", "c"], ["c", "d"])]
        await asyncio.sleep(0)
        brokers.may_answer.set()
        assert await asyncio.gather(first, *others) == [{"a": 0}, {"a": 0}, {"b": 0, "c": 0}, {"c": 0, "d": 0}]
        return brokers.asked

    assert run(look_up) == [{"a"}, {"b", "c", "d"}]


def test_an_error_of_one_topic_concerns_only_those_who_ask_for_it() -> None:
    async def look_up() -> list[Any]:
        brokers = Brokers({"broken": ErrorCode.leader_not_available})
        brokers.may_answer.set()
        catalog = TopicCatalog(brokers)
        lookups = [partition_counts(catalog, [name, "missing"]) for name in ("fine", "broken")]
        return await asyncio.gather(*lookups, return_exceptions=True)

    fine, broken = run(look_up)
    assert fine == {"fine": 0, "missing": 0}
    assert isinstance(broken, CoordinatorNotAvailable)
    assert "'broken' exists: leader_not_available" in str(broken)


def test_without_a_broker_the_coordinator_is_not_available() -> None:
    catalog = TopicCatalog(cluster_of(NO_BROKER))
    with pytest.raises(CoordinatorNotAvailable, match="'orders' exists: ClusterUnreachable"):
        run(lambda: partition_counts(catalog, ["orders"]))


def test_a_lookup_that_no_broker_answers_ends_and_the_next_one_asks_again() -> None:
    async def look_up() -> list[set[str]]:
        brokers = Brokers({})
        catalog = TopicCatalog(brokers, request_timeout=0.05)
        with pytest.raises(CoordinatorNotAvailable, match="'orders' exists: "):
            await partition_counts(catalog, ["orders"])
        brokers.may_answer.set()
        assert await partition_counts(catalog, ["payments"]) == {"payments": 0}
        return brokers.asked

    assert run(look_up)[-1] == {"payments"}


def test_a_list_of_all_topics_has_those_created_before_it_was_asked_for_if_the_caller_may_wait() -> None:
    async def look_up() -> None:
        brokers = Brokers({})
        brokers.listed, brokers.listing_seconds = ["a"], 0.2
        catalog = TopicCatalog(brokers)
        assert (await catalog.all_topics(0.0)).keys() == {"a"}
        brokers.listed.append("b")
        assert (await catalog.all_topics(0.0)).keys() == {"a"}, "listing takes long, and the next one must wait"
        asked_at = asyncio.get_running_loop().time()
        assert (await catalog.all_topics(0.0, wait=4.0)).keys() == {"a", "b"}
        waited = asyncio.get_running_loop().time() - asked_at
        assert waited == pytest.approx(10 * 0.2)
        brokers.listed.append("c")
        assert (await catalog.all_topics(0.0, wait=1.0)).keys() == {"a", "b"}, "it would take longer"

    run_in_virtual_time(look_up())
