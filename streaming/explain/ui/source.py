"""Reads what the pages show from a coordinator's topics, as ``top`` and ``explain`` do."""

import threading
import time
from collections.abc import Mapping

from streaming.client import CoordinatorClient
from streaming.explain.lag import read_lag
from streaming.explain.live.fleet import FleetRow
from streaming.explain.live.group import GroupNow, group_with_partitions, groups_now
from streaming.explain.live.readers import LiveFleet, Pulse
from streaming.explain.page.of_group import ToldGroup, read_group
from streaming.explain.ui.model import Described, Told

ROWS_SECONDS = 1.0
"""How long rows are shown to all viewers: with 100,000 groups, making them takes a good part of a second."""

MEMBERS_SECONDS = 15.0
"""How long a description counts for the search."""


class CoordinatorSource:
    """Reads through a client and a fleet that somebody else starts and ends. See :class:`UiSource`."""

    def __init__(self, client: CoordinatorClient, fleet: LiveFleet) -> None:
        self._client = client
        self._fleet = fleet
        self._lock = threading.Lock()
        self._rows: list[FleetRow] = []
        self._rows_until = 0.0
        self._members: dict[str, tuple[float, GroupNow]] = {}

    @property
    def is_complete(self) -> bool:
        return self._fleet.is_complete

    def rows(self) -> list[FleetRow]:
        """A row for each group, at most a second old."""
        with self._lock:
            if time.monotonic() >= self._rows_until:
                self._rows = self._fleet.rows()
                self._rows_until = time.monotonic() + ROWS_SECONDS
            return self._rows

    def pulse(self) -> Pulse:
        return self._fleet.pulse()

    def describe(self, group_id: str) -> Described:
        return Described(*group_with_partitions(self._client, group_id))

    def tell(self, group_id: str, since: int, *, with_lag: bool = False) -> Told | None:
        client = self._client
        config = {**client.config, "bootstrap.servers": client.bootstrap_servers}
        timeout = client.request_timeout_ms / 1000
        told = ToldGroup(group_id, since, with_lag=with_lag)
        read_group(config, client.topics.journal, timeout, told, client.client_id)
        if not told.teller.has_entries:
            return None
        lag = read_lag(config, client.client_id, told.committed, timeout)
        return Told(told.teller.story(), told.lanes, lag)

    def members(self, rows: Mapping[str, FleetRow]) -> Mapping[str, GroupNow]:
        """The groups of these rows with their members, as they were some seconds ago at most."""
        now = time.monotonic()
        with self._lock:
            self._members = {key: kept for key, kept in self._members.items() if kept[0] > now}
            found = {group_id: self._members[group_id][1] for group_id in rows if group_id in self._members}
        missing = {group_id: row.group_type for group_id, row in rows.items() if group_id not in found}
        described = groups_now(self._client, missing)
        with self._lock:
            self._members |= {group_id: (now + MEMBERS_SECONDS, group) for group_id, group in described.items()}
        return {**found, **described}
