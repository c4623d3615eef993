"""When the gateway looks at the topics of groups: in intervals, and several times soon after a change."""

import asyncio
from contextlib import suppress

from streaming.gateway.security.topic_catalog import LAG_SECONDS
from streaming.gateway.wire.loop_share import loop_time

SOON_SECONDS = 0.25
"""How long after a look the next one begins as long as brokers may lag behind a change."""
SHARE = 0.1
"""The share of the time that looks may take: however often clients change topics, the gateway serves others."""


class LookSchedule:
    """The times of looks. For one event loop, and one task that waits.

    interval: seconds from one look to the next if nothing is known to have changed.
    """

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._changed_at = float("-inf")
        self._looked_at = float("-inf")
        self._took = 0.0
        self._changed = asyncio.Event()

    def hasten(self) -> None:
        """Topics have changed, or may have: look at once, and again until every broker has heard of it."""
        self._changed_at = loop_time()
        self._changed.set()

    def looked(self, seconds: float) -> None:
        """The brokers have answered a look after so many seconds."""
        self._took = seconds

    async def wait(self) -> None:
        """Wait until the next look is due."""
        if self._looked_at == float("-inf"):
            self._looked_at = loop_time()
        while (due := self._due_at()) > loop_time():
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._changed.wait()
        self._looked_at = loop_time()

    def _due_at(self) -> float:
        """When the next look is due, as far as is known now."""
        is_settled = self._looked_at > self._changed_at + LAG_SECONDS
        pause = self._interval if is_settled else min(SOON_SECONDS, self._interval)
        return self._looked_at + max(pause, min(self._took / SHARE, self._interval))
