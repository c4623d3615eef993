"""The state of a membership, shared by the three threads of a member.

The polling thread joins and syncs, the heartbeat thread sends heartbeats, and the client's reader thread receives the
answers. This module holds everything that they share, under one lock. Nothing here waits, sends or calls callbacks.

Two rules make late answers harmless: an answer is ignored unless the member is still in the generation of its request,
and while a JoinGroup is outstanding, every answer but its own is ignored.
"""

import threading
from enum import Enum
from typing import NamedTuple

from coordinator_logic.errors import Error
from coordinator_logic.messages import NO_GENERATION
from streaming.client.errors import CoordinatorError


class Generation(NamedTuple):
    """A member's identity in its group.

    Outside a generation, ``generation_id`` is -1 and ``protocol_name`` None. Before the first join, ``member_id`` is
    empty.
    """

    generation_id: int = NO_GENERATION
    member_id: str = ""
    protocol_name: str | None = None

    @property
    def is_member(self) -> bool:
        """Whether the member is in a generation, as far as it knows."""
        return self.generation_id != NO_GENERATION and self.member_id != ""


class RebalancePhase(Enum):
    """The phase of a membership as the member sees it; each value names the event that started the phase."""

    UNJOINED = "unjoined"
    PREPARING_REBALANCE = "JoinGroup sent"
    COMPLETING_REBALANCE = "JoinGroup answered"
    STABLE = "SyncGroup answered"


class Membership:
    """Generation, phase, and the reason for a rejoin if one is needed.

    ``changed`` is the lock of the state and is notified of every change.
    """

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self._generation = Generation()
        self._phase = RebalancePhase.UNJOINED
        self._rejoin_reason: str | None = ""
        self._fatal: CoordinatorError | None = None

    @property
    def generation(self) -> Generation:
        """The current identity."""
        with self.changed:
            return self._generation

    @property
    def rejoin_needed(self) -> bool:
        """Whether the next step is to send a JoinGroup."""
        with self.changed:
            return self._rejoin_reason is not None

    @property
    def needs_heartbeats(self) -> bool:
        """Whether the session depends on heartbeats: the member is in a generation and no JoinGroup is outstanding."""
        with self.changed:
            return self._fatal is None and self._phase in (RebalancePhase.COMPLETING_REBALANCE, RebalancePhase.STABLE)

    @property
    def failed(self) -> bool:
        """Whether the membership has ended with a fatal error."""
        with self.changed:
            return self._fatal is not None

    def raise_if_failed(self) -> None:
        """Raise the fatal error that ended the membership, if there is one."""
        with self.changed:
            if self._fatal is not None:
                raise self._fatal

    def request_rejoin(self, reason: str) -> None:
        """Have a JoinGroup sent. It carries the first of several reasons (KIP-800)."""
        with self.changed:
            self._rejoin_reason = self._rejoin_reason or reason
            self.changed.notify_all()

    def begin_join(self) -> tuple[Generation, str]:
        """Start a join; returns the identity and the reason to send."""
        with self.changed:
            reason, self._rejoin_reason = self._rejoin_reason or "", None
            self._phase = RebalancePhase.PREPARING_REBALANCE
            self.changed.notify_all()
            return self._generation, reason

    def joined(self, generation: Generation) -> None:
        """Enter the generation of a JoinGroup answer."""
        with self.changed:
            if self._phase is RebalancePhase.PREPARING_REBALANCE:
                self._generation = generation
                self._phase = RebalancePhase.COMPLETING_REBALANCE
                self.changed.notify_all()

    def synced(self, generation: Generation) -> None:
        """Enter the stable phase of a generation, after its SyncGroup answer."""
        with self.changed:
            if self._phase is RebalancePhase.COMPLETING_REBALANCE and self._generation == generation:
                self._phase = RebalancePhase.STABLE
                self.changed.notify_all()

    def abandon_join(self, reason: str, *, keep: Generation | None = None) -> None:
        """End the current join without success and request another, with the identity ``keep`` if it is given."""
        with self.changed:
            self._generation = self._generation if keep is None else keep
            self._phase = RebalancePhase.UNJOINED
            self.request_rejoin(reason)

    def apply_error(self, error: Error, sent: Generation, api: str) -> bool:
        """Apply an error answer to a request of the generation ``sent``; returns whether it changed the state."""
        with self.changed:
            if sent != self._generation or self._phase in (RebalancePhase.UNJOINED, RebalancePhase.PREPARING_REBALANCE):
                return False
            match error:
                case Error.REBALANCE_IN_PROGRESS if self._phase is RebalancePhase.STABLE:
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
        """End the membership with a fatal error, which :meth:`raise_if_failed` raises from now on."""
        with self.changed:
            self._fatal = self._fatal or failure
            self._phase = RebalancePhase.UNJOINED
            self.changed.notify_all()

    def leave(self, rejoin_reason: str) -> Generation:
        """Leave the group, and request a rejoin for ``rejoin_reason``; returns the identity that left."""
        with self.changed:
            left = self._generation
            self._rejoin_reason = None
            self.abandon_join(rejoin_reason, keep=Generation())
            return left
