"""A group that is taken through requests one at a time, with a timeline of what it decided."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.errors import Error
from coordinator_logic.events import Request, Response
from coordinator_logic.group import Group
from coordinator_logic.groups.classic.records import GenerationStarted, MemberAdded, StateChanged
from coordinator_logic.records import (
    GroupCreated,
    GroupDeleted,
    JournalEntry,
    MemberRemoved,
    OffsetsCommitted,
    OffsetsDeleted,
    RequestCause,
    StaticMemberReplaced,
    TransactionalOffsetsCommitted,
)
from coordinator_logic.states import State
from coordinator_logic.step import step
from streaming.contract.output.text import counted
from streaming.explain.story.telling import StoryTeller
from streaming.explain.story.words import cause_in_short
from streaming.journal.fold import GroupFold

COMMITS = frozenset({"OffsetCommit", "TxnOffsetCommit"})


class Decision(NamedTuple):
    """What the group decided at a time (ms since the epoch), in words, and the API or timer that caused it."""

    time: int
    text: str
    cause: str


class ReplayFigures(msgspec.Struct, rename="camel"):
    """What a timeline adds up to. Times in milliseconds."""

    rebalances: int = 0
    generations: int = 0
    not_stable_ms: int = 0
    members_added: int = 0
    members_expelled: int = 0
    refused_commits: int = 0
    refused_requests: int = 0


class World:
    """One course of events of a group. ``since`` is where its timeline begins, ms since the epoch."""

    def __init__(self, group_id: str, config: CoordinatorConfig, since: int) -> None:
        self.group: Group | None = None
        self.decisions: list[Decision] = []
        self.figures = ReplayFigures()
        self._group_id = group_id
        self._config = config
        self._since = since
        self._unstable_since: int | None = None
        self._story = GroupFold(StoryTeller(group_id))

    def handle(self, request: Request) -> list[Response]:
        """Let the group handle a request; what is due fires before it."""
        return self._step([request], request.place.timestamp)

    def wait(self, time: int) -> list[Response]:
        """Let time pass (up to ms since the epoch)."""
        return self._step([], time)

    def end(self, time: int) -> None:
        """Let time pass, and count a rebalance under way until then."""
        self.wait(time)
        self._note_state(True, time)

    def _step(self, requests: Sequence[Request], time: int) -> list[Response]:
        config = self._config
        result = step(self._group_id, self.group, requests, time, started_at=0, config=config, compares_clocks=False)
        self.group = result.group
        for entry in result.journal:
            self._note(entry)
        for response in result.responses:
            self._note_refusal(response, time)
        return result.responses

    def _note(self, entry: JournalEntry) -> None:
        record, is_counted, figures = entry.record, entry.timestamp >= self._since, self.figures
        self._story.add(entry)
        if isinstance(record, StateChanged):
            self._note_state(record.to_state in _SETTLED, entry.timestamp)
            if is_counted:
                figures.rebalances += record.to_state == State.PREPARING_REBALANCE.value
        text = self._in_words(entry)
        if not is_counted or text is None:
            return
        figures.generations += isinstance(record, GenerationStarted)
        figures.members_added += isinstance(record, MemberAdded)
        figures.members_expelled += isinstance(record, MemberRemoved) and not isinstance(entry.cause, RequestCause)
        cause = entry.cause.api if isinstance(entry.cause, RequestCause) else f"timer {entry.cause.timer}"
        self.decisions.append(Decision(entry.timestamp, text, cause))

    def _in_words(self, entry: JournalEntry) -> str | None:
        record, teller = entry.record, self._story.observer
        if isinstance(record, StateChanged) and record.to_state == State.PREPARING_REBALANCE.value:
            teller.pop_ended()
            return f"{record.from_state} -> {record.to_state}: {cause_in_short(teller.rebalances[-1])}"
        return _in_words(record)

    def _note_state(self, is_settled: bool, time: int) -> None:
        if self._unstable_since is not None:
            self.figures.not_stable_ms += max(0, time - max(self._unstable_since, self._since))
        self._unstable_since = None if is_settled else time

    def _note_refusal(self, response: Response, time: int) -> None:
        code = refusal(response)
        if code in _NO_REFUSAL or time < self._since:
            return
        self.figures.refused_requests += 1
        self.figures.refused_commits += response.address.api in COMMITS
        self.decisions.append(Decision(time, f"refused: {Error(code).name}", response.address.api))


_SETTLED = frozenset({State.STABLE.value, State.EMPTY.value, State.DEAD.value})
_NO_REFUSAL = frozenset({Error.NONE, Error.MEMBER_ID_REQUIRED})
"""A client without a member id is given one and asked to join again: that is no refusal."""


def refusal(response: Response) -> int:
    """The error of a response; of a commit, the first of its partitions."""
    if response.error_code or response.address.api not in COMMITS:
        return response.error_code
    topics = getattr(response.body, "topics", [])
    return next((one.error_code for topic in topics for one in topic.partitions if one.error_code), 0)


def _in_words(record: object) -> str | None:
    match record:
        case GroupCreated():
            return "group created"
        case GroupDeleted():
            return f"group deleted: {record.reason}"
        case StateChanged():
            because = f": {record.reason}" if record.reason else ""
            return f"{record.from_state} -> {record.to_state}{because}"
        case MemberAdded():
            return f"member {record.member_id} added"
        case MemberRemoved():
            return f"member {record.member_id} removed: {record.reason}"
        case StaticMemberReplaced():
            return f"static member {record.group_instance_id} replaced, now {record.new_member_id}"
        case OffsetsCommitted() | TransactionalOffsetsCommitted():
            return f"offsets of {counted(len(record.offsets), 'partition')} committed"
        case OffsetsDeleted():
            return f"offsets deleted: {record.reason}"
        case GenerationStarted():
            return f"generation {record.generation}"
        case _:
            return None
