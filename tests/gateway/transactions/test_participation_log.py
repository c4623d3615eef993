"""The participation log: what one gateway writes, every other one reads."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from streaming.embedded.broker import EmbeddedBroker
from streaming.gateway.transactions.participation import (
    Participation,
    TransactionDescription,
    TransactionPhase,
    new_participation,
)
from streaming.gateway.transactions.participation_log import ParticipationLog, ParticipationLogUnavailable
from streaming.gateway.transactions.timeouts import TransactionTimeouts
from tests.support.kafka_io import produce
from tests.support.topics import create_topic, unique

LONG = TransactionTimeouts(log_metadata_seconds=60.0, log_read_seconds=60.0, log_delivery_seconds=60.0)
SHORT = TransactionTimeouts(log_metadata_seconds=0.2, log_read_seconds=0.2, log_delivery_seconds=0.2)


@asynccontextmanager
async def running_log(
    bootstrap_servers: str, topic: str, timeouts: TransactionTimeouts = LONG
) -> AsyncIterator[ParticipationLog]:
    log = ParticipationLog(bootstrap_servers, topic, unique("gateway"), {}, timeouts)
    log.start()
    try:
        yield log
    finally:
        await asyncio.to_thread(log.close)


@pytest.fixture
def topic(broker: EmbeddedBroker) -> str:
    name = unique("transactions")
    create_topic(broker.bootstrap_servers, name, 1)
    return name


def participations(count: int) -> list[Participation]:
    description = TransactionDescription("Ongoing", 7, 3, 1_000)
    return [new_participation("t", f"group-{number}", description) for number in range(count)]


def by_group(found: list[Participation]) -> list[Participation]:
    return sorted(found, key=lambda participation: participation.group_id)


def test_each_log_reads_what_another_one_has_written_and_erased(broker: EmbeddedBroker, topic: str) -> None:
    first, second, third = participations(3)
    committing = second.with_phase(TransactionPhase.COMMITTING)

    async def run() -> list[list[Participation]]:
        servers = broker.bootstrap_servers
        async with running_log(servers, topic) as writer, running_log(servers, topic) as reader:
            found = [await reader.read()]
            await writer.write([first, second, third])
            found.append(await reader.read())
            await writer.write([committing])
            await writer.erase([first])
            found.append(await reader.read())
        async with running_log(servers, topic) as restarted:
            found.append(await restarted.read())
        return found

    found = asyncio.run(asyncio.wait_for(run(), 120.0))
    assert [by_group(each) for each in found] == [
        [],
        [first, second, third],
        [committing, third],
        [committing, third],
    ]


def test_an_unreadable_record_is_ignored(broker: EmbeddedBroker, topic: str) -> None:
    (participation,) = participations(1)
    produce(broker.bootstrap_servers, topic, {0: [b"not JSON", b"{}"]})

    async def run() -> list[Participation]:
        async with running_log(broker.bootstrap_servers, topic) as log:
            await log.write([participation])
            return await log.read()

    assert asyncio.run(asyncio.wait_for(run(), 120.0)) == [participation]


def test_a_missing_topic_has_no_participations(broker: EmbeddedBroker) -> None:
    async def run() -> list[Participation]:
        # librdkafka may wait for the topic as long as it is allowed to.
        timeouts = TransactionTimeouts(log_metadata_seconds=10.0)
        async with running_log(broker.bootstrap_servers, unique("missing"), timeouts) as log:
            return await log.read()

    assert asyncio.run(asyncio.wait_for(run(), 120.0)) == []


def test_without_a_broker_reads_and_writes_fail_within_their_timeouts() -> None:
    async def run() -> None:
        async with running_log("127.0.0.1:1", "transactions", SHORT) as log:
            with pytest.raises(ParticipationLogUnavailable, match="the end of topic 'transactions' is unknown"):
                await log.read()
            with pytest.raises(ParticipationLogUnavailable, match="a participation was not written"):
                await log.write(participations(1))

    asyncio.run(asyncio.wait_for(run(), 30.0))
