"""Chooses the page of a request."""

import logging
import threading
import time
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import parse_qsl

from streaming.client import CoordinatorError
from streaming.explain.page.of_group import page_of_story
from streaming.explain.page.writing import LOCAL, page_policy
from streaming.explain.story.words import clock
from streaming.explain.time_travel.point_in_time import point_in_time
from streaming.explain.ui.elements import GROUP, GROUPS, SEARCH, TIMELINE, HtmlPage, document, element, shortened
from streaming.explain.ui.fleet_pages import DEFAULT_SORT, Selection, groups_page, matching_members, search_page
from streaming.explain.ui.group_page import group_page
from streaming.explain.ui.guard import METHODS, HttpRequest, refusal
from streaming.explain.ui.model import Described, Told, UiSource

log = logging.getLogger(__name__)

MAX_READINGS = 4
"""How many requests may read from the brokers at a time."""

MAX_SEARCHED = 500
"""How many groups a search asks for their members: each is a request to the coordinator."""

MAX_FIELDS = 10

NO_ENTRIES = "The journal has no entries of this group in this time."


class HttpResponse(NamedTuple):
    """A page, with the policy of what it may load and run, and further headers."""

    status: HTTPStatus
    page: str
    policy: str
    headers: tuple[tuple[str, str], ...] = ()


class _Problem(Exception):
    """There is no page to show; its argument is the reason."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


def _now() -> int:
    return time.time_ns() // 1_000_000


class Site:
    """Answers requests, on any thread.

    source: where the pages get what they show. names: names of the host besides its address and ``localhost``. now:
    the time, ms since the epoch.
    """

    def __init__(self, source: UiSource, names: Collection[str] = (), now: Callable[[], int] = _now) -> None:
        self._source = source
        self._names = names
        self._now = now
        self._readings = threading.BoundedSemaphore(MAX_READINGS)
        self._pages: dict[str, Callable[[dict[str, str]], HtmlPage]] = {
            GROUPS: self._groups,
            GROUP: self._group,
            TIMELINE: self._timeline,
            SEARCH: self._search,
        }

    def respond(self, request: HttpRequest) -> HttpResponse:
        """The answer to a request; never raises."""
        refused = refusal(request, self._names)
        if refused is not None:
            allowed = (("Allow", ", ".join(METHODS)),) if refused.status == HTTPStatus.METHOD_NOT_ALLOWED else ()
            return _problem_page(refused.status, refused.text, allowed)
        try:
            page = self._page(request)
        except _Problem as problem:
            return _problem_page(problem.status, problem.text)
        except CoordinatorError as failure:
            return _problem_page(HTTPStatus.SERVICE_UNAVAILABLE, str(failure))
        except Exception:
            log.exception("the page %s cannot be made", request.path)
            return _problem_page(HTTPStatus.INTERNAL_SERVER_ERROR, "This page cannot be made; the log says why.")
        return HttpResponse(HTTPStatus.OK, page.text, page.policy)

    def _page(self, request: HttpRequest) -> HtmlPage:
        made = self._pages.get(request.path)
        if made is None:
            raise _Problem(HTTPStatus.NOT_FOUND, "There is no such page.")
        values = _fields(request.query)
        if request.path == GROUPS:
            return made(values)
        if not self._readings.acquire(blocking=False):
            text = "Other pages are being made at the moment: try again in some seconds."
            raise _Problem(HTTPStatus.SERVICE_UNAVAILABLE, text)
        try:
            return made(values)
        finally:
            self._readings.release()

    def _groups(self, values: dict[str, str]) -> HtmlPage:
        selection = Selection(values.get("filter", ""), values.get("sort", DEFAULT_SORT), bool(values.get("reverse")))
        return groups_page(self._source, selection)

    def _group(self, values: dict[str, str]) -> HtmlPage:
        group_id = _group_id(values)
        row = next((one for one in self._source.rows() if one.group_id == group_id), None)
        described, told = self._described(group_id), self._told(group_id)
        is_missing = row is None and told == NO_ENTRIES
        if is_missing and isinstance(described, Described) and described.group.error:
            raise _Problem(
                HTTPStatus.NOT_FOUND,
                f"Group {shortened(group_id)} does not exist, and the journal has no entries of it.",
            )
        return group_page(group_id, row, described, told, self._now())

    def _described(self, group_id: str) -> Described | str:
        try:
            return self._source.describe(group_id)
        except CoordinatorError as failure:
            return str(failure)

    def _told(self, group_id: str) -> Told | str:
        try:
            return self._source.tell(group_id, 0) or NO_ENTRIES
        except CoordinatorError as failure:
            return f"The journal cannot be read: {failure}"

    def _timeline(self, values: dict[str, str]) -> HtmlPage:
        group_id, since = _group_id(values), 0
        if values.get("since"):
            try:
                since = point_in_time(values["since"], datetime.fromtimestamp(self._now() / 1000, UTC))
            except ValueError as error:
                raise _Problem(HTTPStatus.BAD_REQUEST, f"since: {error}") from None
        told = self._source.tell(group_id, since, with_lag=bool(values.get("lag")))
        if told is None:
            time = f" since {clock(since)}" if since else ""
            text = f"The journal has no entries of the group {shortened(group_id)}{time}."
            raise _Problem(HTTPStatus.NOT_FOUND, text)
        policy = f"{page_policy()}; form-action 'none'; frame-ancestors 'none'"
        return HtmlPage(page_of_story(told.story, told.lanes, told.lag, LOCAL), policy)

    def _search(self, values: dict[str, str]) -> HtmlPage:
        query = values.get("q", "").strip()
        if not query:
            text = "Type a part of a group id, a member id, an instance id, a client id or a host."
            return search_page("", [], [], text)
        rows = sorted(self._source.rows(), key=lambda row: row.group_id)
        with_members = [row for row in rows if row.members]
        asked = {row.group_id: row for row in with_members[:MAX_SEARCHED]}
        try:
            members = list(matching_members(self._source.members(asked), query))
            remark = _remark(asked, with_members)
        except CoordinatorError as failure:
            members, remark = [], f"Members were not searched: {failure}"
        groups = [row for row in rows if query.casefold() in row.group_id.casefold()]
        return search_page(query, groups, members, remark)


def _remark(asked: Collection[object], with_members: Collection[object]) -> str:
    text = "Members that have gone are on the timelines of their groups."
    if len(asked) < len(with_members):
        text = f"Members of {len(asked):,} of {len(with_members):,} groups were searched. {text}"
    return text


def _fields(query: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(query, keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict"))
    except ValueError:
        raise _Problem(HTTPStatus.BAD_REQUEST, "The address cannot be read.") from None


def _group_id(values: dict[str, str]) -> str:
    if "id" not in values:
        raise _Problem(HTTPStatus.BAD_REQUEST, "The address names no group.")
    return values["id"]


def _problem_page(status: HTTPStatus, text: str, headers: tuple[tuple[str, str], ...] = ()) -> HttpResponse:
    page = document(status.phrase, element("h1", {}, status.phrase), element("p", {}, text))
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers = (*headers, ("Retry-After", "2"))
    return HttpResponse(status, page.text, page.policy, headers)
