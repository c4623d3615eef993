"""The gateway's liveness and readiness."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from streaming.contract.monitoring_server import Check, Health
from streaming.gateway.groups.serving import GroupService
from streaming.gateway.proxy.cluster import Cluster

PULSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 10.0
"""An event loop that was not free for so long hangs: no handler and no decoder holds it for a second."""

REFRESHES_MISSED = 4
"""A metadata refresh that failed is retried at the next one; so many in a row mean that no broker answers."""


class GatewayHealth:
    """The checks of a gateway, filled in as its parts start. ``refresh_seconds`` is the time between two refreshes."""

    def __init__(self, cluster: Cluster, refresh_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._cluster = cluster
        self._longest_refresh = REFRESHES_MISSED * refresh_seconds + LONGEST_PAUSE_SECONDS
        self._clock = clock
        self._pulse = clock()
        self._groups: GroupService | None = None
        self.checks = Health(self._live, self._ready)

    @asynccontextmanager
    async def watching(self, groups: GroupService) -> AsyncIterator[None]:
        """Watch the event loop and the group APIs while the block runs."""
        self._groups = groups
        beating = asyncio.create_task(self._beat())
        try:
            yield
        finally:
            beating.cancel()

    async def _beat(self) -> None:
        while True:
            self._pulse = self._clock()
            await asyncio.sleep(PULSE_SECONDS)

    def _live(self) -> list[Check]:
        paused = self._clock() - self._pulse
        checks = [Check("event loop", paused <= LONGEST_PAUSE_SECONDS, f"was free {paused:.1f} s ago")]
        if self._groups is not None:
            for reader, alive in (
                ("directory", self._groups.directory.is_alive()),
                ("responses", self._groups.channel.is_alive()),
            ):
                checks.append(Check(f"reader of {reader}", alive, "runs" if alive else "has ended"))
        return checks

    def _ready(self) -> list[Check]:
        return [*self._live(), self._brokers_answer(), *self._coordinator_is_found()]

    def _brokers_answer(self) -> Check:
        refreshed_at = self._cluster.refreshed_at
        if refreshed_at is None:
            return Check("brokers", False, "none has answered yet")
        seconds = self._clock() - refreshed_at
        return Check("brokers", seconds <= self._longest_refresh, f"answered {seconds:.1f} s ago")

    def _coordinator_is_found(self) -> list[Check]:
        groups = self._groups
        connected = groups is not None and groups.channel.is_connected
        complete = groups is not None and groups.directory.is_complete
        failure = None if groups is None else groups.channel.failure
        return [
            Check("coordinator", connected, "its topics were found" if connected else "its topics were not found yet"),
            Check("requests", failure is None, failure or "can be sent to it"),
            Check("directory", complete, "was read" if complete else "was not read to its end yet"),
        ]
