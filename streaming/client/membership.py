"""What a member knows of its membership, shared by the three threads that learn something about it.

The thread that polls joins and syncs, the heartbeat thread sends heartbeats, the client's reader thread brings
their answers. All they share is here, under one lock; nothing here waits, sends, or calls anybody's code.

Two rules keep late answers from doing harm. An answer counts only for the generation that its request was sent
in. While a JoinGroup is under way only its own answer counts: whatever else was asked before is about the past.
"""

import threading
from enum import Enum
from typing import NamedTuple

from coordinator_logic.errors import Error
from coordinator_logic.messages import NO_GENERATION
from streaming.client.errors import CoordinatorError


class Generation(NamedTuple):
    """A member's identity in its group. ``generation_id`` is -1 and ``protocol_name`` None outside of one."""

    generation_id: int = NO_GENERATION
    member_id: str = ""
    protocol_name: str | None = None

    @property
    def is_member(self) -> bool:
        """Whether the group had this member in a generation when it was last heard of."""
        return self.generation_id != NO_GENERATION and self.member_id != ""


class Phase(Enum):
    """Where a member stands, from its own point of view."""

    UNJOINED = "unjoined"
    PREPARING_REBALANCE = "JoinGroup sent"
    COMPLETING_REBALANCE = "JoinGroup answered"
    STABLE = "SyncGroup answered"


class Membership:
    """Generation, phase, and whether it is time to join again. ``changed`` is the lock; it tells of every change."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self._generation = Generation()
        self._phase = Phase.UNJOINED
        self._rejoin_reason: str | None = ""
        self._fatal: CoordinatorError | None = None

    @property
    def generation(self) -> Generation:
        """The current identity."""
        with self.changed:
            return self._generation

    @property
    def rejoin_needed(self) -> bool:
        """Whether a JoinGroup has to be sent."""
        with self.changed:
            return self._rejoin_reason is not None

    @property
    def heartbeats_wanted(self) -> bool:
        """Whether the coordinator has to hear of this member: it is in a generation, and does not hold its join."""
        with self.changed:
            return self._fatal is None and self._phase in (Phase.COMPLETING_REBALANCE, Phase.STABLE)

    @property
    def failed(self) -> bool:
        """Whether this member is over for good."""
        with self.changed:
            return self._fatal is not None

    def raise_if_failed(self) -> None:
        """Raise what ended this member, if anything did."""
        with self.changed:
            if self._fatal is not None:
                raise self._fatal

    def request_rejoin(self, reason: str) -> None:
        """A JoinGroup has to be sent; the first reason is the one that will be told (KIP-800)."""
        with self.changed:
            self._rejoin_reason = self._rejoin_reason or reason
            self.changed.notify_all()

    def begin_join(self) -> tuple[Generation, str]:
        """A JoinGroup is about to be sent: as whom, and for what reason."""
        with self.changed:
            reason, self._rejoin_reason = self._rejoin_reason or "", None
            self._phase = Phase.PREPARING_REBALANCE
            self.changed.notify_all()
            return self._generation, reason

    def joined(self, generation: Generation) -> None:
        """JoinGroup was answered: the generation has begun."""
        with self.changed:
            if self._phase is Phase.PREPARING_REBALANCE:
                self._generation = generation
                self._phase = Phase.COMPLETING_REBALANCE
                self.changed.notify_all()

    def synced(self, generation: Generation) -> None:
        """SyncGroup was answered: the member has its assignment of that generation."""
        with self.changed:
            if self._phase is Phase.COMPLETING_REBALANCE and self._generation == generation:
                self._phase = Phase.STABLE
                self.changed.notify_all()

    def abandon_join(self, reason: str, *, keep: Generation | None = None) -> None:
        """The join under way came to nothing: another has to be sent, as ``keep`` if it is given."""
        with self.changed:
            self._generation = self._generation if keep is None else keep
            self._phase = Phase.UNJOINED
            self.request_rejoin(reason)

    def heard(self, error: Error, sent: Generation, api: str) -> bool:
        """Draw the consequences of an answer to a request of the generation ``sent``; whether there were any."""
        with self.changed:
            if sent != self._generation or self._phase in (Phase.UNJOINED, Phase.PREPARING_REBALANCE):
                return False
            match error:
                case Error.REBALANCE_IN_PROGRESS if self._phase is Phase.STABLE:
                    self.request_rejoin("group is already rebalancing")
                case Error.ILLEGAL_GENERATION:
                    keep = Generation(member_id=sent.member_id)
                    self.abandon_join(f"encountered ILLEGAL_GENERATION from {api} response", keep=keep)
                case Error.UNKNOWN_MEMBER_ID:
                    self.abandon_join(f"encountered UNKNOWN_MEMBER_ID from {api} response", keep=Generation())
                case _:
                    return False
            return True

    def fail(self, failure: CoordinatorError) -> None:
        """This member is over for good; :meth:`raise_if_failed` says why from now on."""
        with self.changed:
            self._fatal = self._fatal or failure
            self._phase = Phase.UNJOINED
            self.changed.notify_all()

    def leave(self, rejoin_reason: str) -> Generation:
        """The member leaves the group, until it joins for ``rejoin_reason``; returns who it was."""
        with self.changed:
            left = self._generation
            self._rejoin_reason = None
            self.abandon_join(rejoin_reason, keep=Generation())
            return left
