"""A coordinator's groups as given data."""

from collections.abc import Mapping
from urllib.parse import urlencode

from streaming.client import CoordinatorNotAvailable
from streaming.explain.lag import Lag
from streaming.explain.live.fleet import FleetRow
from streaming.explain.live.group import GroupNow
from streaming.explain.live.group_types import MemberNow
from streaming.explain.live.partitions import PartitionNow
from streaming.explain.ui.guard import HttpRequest
from streaming.explain.ui.model import Described, Told
from streaming.explain.ui.routes import HttpResponse, Site
from tests.explain.live.given import Given
from tests.explain.page.scripted import ScriptedGroup, told

NOW = 1_764_010_000_000
UNKNOWN = "GROUP_ID_NOT_FOUND"


class GivenSource(Given):
    """Groups with their members and journals; ``away``: the brokers do not answer."""

    def __init__(
        self, *rows: FleetRow, members: Mapping[str, list[MemberNow]] | None = None, away: bool = False
    ) -> None:
        super().__init__(*rows)
        self.given_members = members or {}
        self.stories: dict[str, ScriptedGroup] = {}
        self.partitions: list[PartitionNow] = []
        self.away = away
        self.asked: list[list[str]] = []

    def describe(self, group_id: str) -> Described:
        self._answer()
        if group_id not in {row.group_id for row in self.given}:
            return Described(GroupNow(group_id=group_id, error=UNKNOWN), [])
        return Described(self._group(group_id), self.partitions)

    def tell(self, group_id: str, since: int, *, with_lag: bool = False) -> Told | None:
        self._answer()
        story = self.stories.get(group_id)
        entries = [] if story is None else story.journal
        lag = Lag(absent="nobody measured it") if with_lag else None
        has_entries = any(entry.timestamp >= since for entry in entries)
        return Told(*told(entries, group_id, since), lag) if has_entries else None

    def members(self, rows: Mapping[str, FleetRow]) -> Mapping[str, GroupNow]:
        self._answer()
        self.asked.append(list(rows))
        return {group_id: self._group(group_id) for group_id in rows}

    def _group(self, group_id: str) -> GroupNow:
        members = self.given_members.get(group_id, [])
        return GroupNow(group_id=group_id, state="Stable", protocol="consumer, range", members=members)

    def _answer(self) -> None:
        if self.away:
            raise CoordinatorNotAvailable("no broker answers")


def get(source: GivenSource, path: str, **values: str) -> HttpResponse:
    """What a site of this source answers to a browser on its machine."""
    return respond(source, HttpRequest("GET", path, urlencode(values), host="127.0.0.1:8080"))


def respond(source: GivenSource, request: HttpRequest) -> HttpResponse:
    """What a site of this source answers at :data:`NOW`."""
    return Site(source, now=lambda: NOW).respond(request)
