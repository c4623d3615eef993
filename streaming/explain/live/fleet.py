"""Folds the journal's last minutes and the directory into one row for each group."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise

import msgspec

from coordinator_logic.records import GroupDirectoryEntry, JournalEntry, OffsetRecord
from coordinator_logic.states import State
from streaming.explain.live.positions import EndOffsets, Positions
from streaming.explain.live.transitions import BEGINS_REBALANCE, Transition, Transitions
from streaming.explain.story.telling import StoryTeller
from streaming.explain.story.triggers import is_reset
from streaming.explain.story.words import cause_in_short
from streaming.journal.fold import GroupFold, JournalFold, Observer

REBALANCING = frozenset(
    state.value for state in (State.PREPARING_REBALANCE, State.COMPLETING_REBALANCE, State.ASSIGNING, State.RECONCILING)
)

MINUTE_MS = 60_000


class FleetRow(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One group now, and how it has fared in the window.

    rebalances: how many began in the window. rebalances_a_minute: the same, by the window's length. rebalancing_share:
    the part of the window, 0 to 1, in which the group was PreparingRebalance or CompletingRebalance, or Assigning or
    Reconciling if it is a consumer group. generation: the group epoch of a consumer group. since: when the group
    entered its state, ms since the epoch; None if that was before the window. reason: why the last rebalance of the
    window began; None if none did. lag: the records behind the offsets that the group has committed since the journal
    is read; None if it has committed none.
    """

    group_id: str
    state: str
    group_type: str
    protocol_type: str
    generation: int
    members: int
    offsets: int
    rebalances: int
    rebalances_a_minute: float
    rebalancing_share: float
    since: int | None
    reason: str | None
    lag: int | None


class _History(Observer):
    """The transitions of one group in the window, its offsets, and why its newest rebalance began, as its story says.

    Most groups only commit: those have no story, which takes memory.
    """

    def __init__(self, group_id: str) -> None:
        self.transitions = Transitions()
        self.positions = Positions()
        self.cause: str | None = None
        self._group_id = group_id
        self._teller: StoryTeller | None = None

    def on_entry(self, entry: JournalEntry) -> None:
        self.positions.note(entry.record)
        self.transitions.note(entry.record, entry.timestamp)
        if self._teller is None and (not isinstance(entry.record, OffsetRecord) or is_reset(entry.cause)):
            self._teller = StoryTeller(self._group_id)
        if self._teller is not None:
            self._teller.on_entry(entry)
            if self._teller.rebalances:
                self.cause = cause_in_short(self._teller.rebalances[-1])
                self._teller.pop_ended()

    def on_turn(self, turn: Sequence[JournalEntry]) -> None:
        if self._teller is not None:
            self._teller.on_turn(turn)


class Fleet:
    """All groups, as of the journal entries that were noted.

    window_ms: how far back rows look.
    """

    def __init__(self, window_ms: int = 10 * MINUTE_MS) -> None:
        self.window_ms = window_ms
        self._journal = JournalFold(lambda group_id: GroupFold(_History(group_id)))
        self._newest = 0

    def note(self, entry: JournalEntry) -> None:
        """Note an entry of the journal; those of one group come in the journal's order."""
        self._newest = max(self._newest, entry.timestamp)
        self._journal.add(entry)

    def partitions(self) -> set[tuple[str, int]]:
        """The partitions that any group has committed, by topic and partition."""
        return {key for history in self._histories() for key in history.positions.partitions()}

    def rows(self, directory: Iterable[GroupDirectoryEntry], now: int, ends: EndOffsets) -> list[FleetRow]:
        """A row for each group of the directory, in its order; ``now`` in ms since the epoch.

        If the journal is ahead of this host's clock, its last entry's time is the present.
        """
        now = max(now, self._newest)
        for history in self._histories():
            history.transitions.forget_before(now - self.window_ms)
        return [self._row(entry, now, ends) for entry in directory]

    def _histories(self) -> Iterator[_History]:
        return (fold.observer for fold in self._journal.groups.values())

    def _row(self, entry: GroupDirectoryEntry, now: int, ends: EndOffsets) -> FleetRow:
        fold = self._journal.groups.get(entry.group_id)
        history = None if fold is None else fold.observer
        transitions = history.transitions.up_to(entry.group_state) if history is not None else []
        begun = [one for one in transitions if one.to_state in BEGINS_REBALANCE]
        return FleetRow(
            group_id=entry.group_id,
            state=entry.group_state,
            group_type=entry.group_type,
            protocol_type=entry.protocol_type,
            generation=entry.generation,
            members=entry.members,
            offsets=entry.offsets,
            rebalances=len(begun),
            rebalances_a_minute=len(begun) * MINUTE_MS / self.window_ms,
            rebalancing_share=_rebalancing_ms(transitions, entry.group_state, now - self.window_ms, now)
            / self.window_ms,
            since=transitions[-1].at if transitions else None,
            reason=history.cause if history is not None and begun else None,
            lag=history.positions.lag(ends) if history is not None else None,
        )


def _rebalancing_ms(transitions: Collection[Transition], state_now: str, begin: int, now: int) -> int:
    """For how long of the time from ``begin`` to ``now`` a group with these transitions rebalanced."""
    if not transitions:
        return now - begin if state_now in REBALANCING else 0
    first, *_ = transitions
    entered: Sequence[tuple[int, str]] = [(begin, first.from_state), *((one.at, one.to_state) for one in transitions)]
    return sum(after - at for (at, state), (after, _) in pairwise([*entered, (now, "")]) if state in REBALANCING)
