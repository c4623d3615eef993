"""When a gateway is live and ready; there is no broker."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from streaming.client import directory
from streaming.contract.monitoring_server import Check, serving_monitoring
from streaming.gateway.groups import channel
from streaming.gateway.groups.serving import GroupService, serving_groups
from streaming.gateway.health import LONGEST_PAUSE_SECONDS, GatewayHealth
from streaming.gateway.options import GatewayOptions, load_gateway_options
from streaming.gateway.proxy.cluster import Cluster
from tests.gateway.support.direct_handlers import every_group
from tests.support.virtual_time import Clock
from tests.support.waiting import LIMIT_SECONDS

NO_BROKER = "127.0.0.1:1"
OPTIONS = load_gateway_options({"bootstrap-servers": NO_BROKER})
REFRESH_SECONDS = 5.0
LONGEST_REFRESH_SECONDS = 30.0
"""As docs/operations/reference.md has it: four times the time between two refreshes, and 10 s."""


@pytest.fixture(autouse=True)
def _short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for a broker does not delay the end of a test."""
    monkeypatch.setattr(channel, "CONNECT_TIMEOUT_SECONDS", 0.1)
    monkeypatch.setattr(directory, "METADATA_TIMEOUT_SECONDS", 0.1)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(OPTIONS, {})


@pytest.fixture
def gateway(cluster: Cluster, clock: Clock) -> GatewayHealth:
    return GatewayHealth(cluster, REFRESH_SECONDS, clock)


def failing(checks: Callable[[], Sequence[Check]]) -> list[str]:
    return [check.name for check in checks() if not check.ok]


def run(work: Coroutine[Any, Any, None]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(LIMIT_SECONDS):
            await work

    asyncio.run(limited())


@asynccontextmanager
async def watched_groups(gateway: GatewayHealth) -> AsyncIterator[GroupService]:
    """The group APIs of a gateway that waits for its brokers."""
    options = GatewayOptions(bootstrap_servers=NO_BROKER, kafka={"log_level": "0"})
    serving = serving_groups(options, every_group, Cluster(OPTIONS, {}))
    async with serving as groups, gateway.watching(groups):
        yield groups


def test_a_gateway_whose_event_loop_is_held_is_not_live_until_it_is_free(gateway: GatewayHealth, clock: Clock) -> None:
    async def hold() -> None:
        async with watched_groups(gateway):
            # Nothing is awaited here: the loop is held.
            clock.now += LONGEST_PAUSE_SECONDS
            assert failing(gateway.checks.live) == []
            clock.now += 0.1
            assert failing(gateway.checks.live) == ["event loop"]
            while failing(gateway.checks.live):
                await asyncio.sleep(0.01)

    run(hold())


def test_a_gateway_whose_reader_has_ended_is_not_live(gateway: GatewayHealth) -> None:
    async def end_reader() -> None:
        async with watched_groups(gateway) as groups:
            assert failing(gateway.checks.live) == []
            await asyncio.to_thread(groups.directory.close)
            assert failing(gateway.checks.live) == ["reader of directory"]

    run(end_reader())


def test_a_gateway_whose_brokers_do_not_answer_is_live_and_not_ready(
    gateway: GatewayHealth, cluster: Cluster, clock: Clock
) -> None:
    assert "brokers" in failing(gateway.checks.ready)
    cluster.refreshed_at = clock.now
    clock.now += LONGEST_REFRESH_SECONDS
    assert "brokers" not in failing(gateway.checks.ready)
    clock.now += 0.1
    assert "brokers" in failing(gateway.checks.ready)
    assert "brokers" not in failing(gateway.checks.live)


def test_by_default_the_pages_are_served_at_127_0_0_1_only(gateway: GatewayHealth) -> None:
    with serving_monitoring(OPTIONS.metrics_host, 0, CollectorRegistry(), gateway.checks) as port:
        socket.create_connection(("127.0.0.1", port), LIMIT_SECONDS).close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port), LIMIT_SECONDS)
