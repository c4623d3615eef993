"""The state of a membership in a consumer group (KIP-848), shared by the three threads of a member.

The polling thread gives partitions up and adds them, the heartbeat thread sends heartbeats, and the client's reader
thread receives the answers. This module holds everything that they share, under one lock. It reads no clock, and
nothing here waits, sends or calls callbacks.

Heartbeats do not wait for answers, unlike those of Kafka's Java client: a coordinator that was slow or down finds in
its log that the member was alive. Three rules make that safe.

1. A heartbeat lists the owned partitions only if it has all fields. It lists everything that the member owns or may
   add by an answer that it has seen. The answers to earlier heartbeats have no effect from then on: they could assign
   partitions that the coordinator regards as given up because of this list. Its own answer has the whole assignment.
2. Any other heartbeat confirms nothing. The coordinator refuses it if the member's epoch has moved on meanwhile; the
   answer that says so comes first, so a refusal of an older epoch has no effect.
3. A first heartbeat (epoch 0) is the only one until it is answered.

Source: KIP-848, "Member state machine"; AbstractMembershipManager of Kafka's Java client.
"""

import threading
from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from coordinator_logic.errors import Error
from coordinator_logic.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from streaming.client.errors import CoordinatorError
from streaming.client.membership.consumer_groups.heartbeat_fields import (
    JOIN_EPOCH,
    HeartbeatFields,
    TopicIdPartition,
)
from streaming.client.membership.consumer_groups.types import TopicSubscription
from streaming.client.membership.membership_state import Generation
from streaming.client.membership.types import MemberConfig

FIRST_HEARTBEAT_INTERVAL = 5.0
"""Seconds between heartbeats until an answer says how often to send them; Kafka's default."""

Partitions = frozenset[TopicIdPartition]


class MembershipPhase(Enum):
    """The phase of a membership as the member sees it."""

    UNJOINED = "not in the group"
    JOINING = "first heartbeat due or unanswered"
    JOINED = "in the group"
    LOST = "removed, fenced or left by a timeout; the member has yet to give its partitions up"


class Sent(NamedTuple):
    """A heartbeat that was sent: its number, its epoch, and the number of times the member had joined or left."""

    number: int
    epoch: int
    incarnation: int


class Change(NamedTuple):
    """The next change of what the member owns: what to revoke, and if that is nothing, what was added."""

    revoked: Partitions
    added: Partitions


class Effect(Enum):
    """What an error answer did to the membership."""

    IGNORED = "ignored"
    RETRIED = "retried"
    LOST = "lost"
    FENCED = "fenced"
    REFUSED = "refused"


class ConsumerMembership:
    """Epoch, owned and assigned partitions, and when the next heartbeat is due.

    ``changed`` is the lock of the state and is notified of every change. Times and durations are in seconds.
    """

    def __init__(self, member_id: str, config: MemberConfig, max_poll_interval: float) -> None:
        self.changed = threading.Condition()
        self._member_id = member_id
        self._fields = HeartbeatFields(member_id, config)
        self._retry_backoff, self._retry_backoff_max = (
            config.retry_backoff_ms / 1000,
            config.retry_backoff_max_ms / 1000,
        )
        self._max_poll_interval = max_poll_interval
        self._interval = FIRST_HEARTBEAT_INTERVAL
        self._phase = MembershipPhase.UNJOINED
        self._epoch = JOIN_EPOCH
        self._incarnation = 0
        self._subscription = TopicSubscription()
        self._owned: Partitions = frozenset()
        self._target: Partitions = frozenset()
        # Whether the polling thread has yet to be told of the newest assignment.
        self._is_news = False
        # Whether the coordinator waits for a list of the owned partitions.
        self._must_confirm = False
        self._must_send_all = False
        self._last_number = 0
        self._last_full = 0
        self._due = 0.0
        self._failures = 0
        self._last_poll = 0.0
        self._refusal: CoordinatorError | None = None
        self._fatal: CoordinatorError | None = None

    # ----------------------------------------------------------------------------------------------------------
    # For any thread

    @property
    def generation(self) -> Generation:
        """The member id, and the member epoch as the generation id; -1 outside the group."""
        with self.changed:
            if self._phase is MembershipPhase.JOINED:
                return Generation(self._epoch, self._member_id)
            return Generation(member_id=self._member_id)

    @property
    def phase(self) -> MembershipPhase:
        """The current phase."""
        with self.changed:
            return self._phase

    @property
    def owned(self) -> Partitions:
        """The partitions that the application has."""
        with self.changed:
            return self._owned

    # ----------------------------------------------------------------------------------------------------------
    # For the polling thread

    def record_poll(self, now: float) -> None:
        """Restart the poll timeout."""
        with self.changed:
            self._last_poll = now

    def subscribe(self, subscription: TopicSubscription, now: float) -> None:
        """Replace the subscription. A member outside the group joins it; another reports the change at once."""
        with self.changed:
            is_new = subscription != self._subscription
            self._subscription = subscription
            if self._phase is MembershipPhase.UNJOINED:
                self._incarnation += 1
                self._epoch, self._phase = JOIN_EPOCH, MembershipPhase.JOINING
                self._must_send_all, self._must_confirm, self._is_news = True, False, False
                self._owned = self._target = frozenset()
                self._due = now
            elif is_new and self._phase is MembershipPhase.JOINED and not self._failures:
                self._due = now
            self.changed.notify_all()

    def next_change(self) -> Change | None:
        """What the member must give up, or else what it gets; None if it has what it was assigned last.

        The first assignment after a join, and every new one, is a change even if it adds nothing.
        """
        with self.changed:
            if self._phase is not MembershipPhase.JOINED:
                return None
            change = Change(self._owned - self._target, self._target - self._owned)
            return change if self._is_news or change.revoked or change.added else None

    def confirm_revoked(self, revoked: Iterable[TopicIdPartition], now: float) -> None:
        """Report that the application has given partitions up."""
        with self.changed:
            self._owned -= set(revoked)
            self._confirm_when_revoked(now)
            self.changed.notify_all()

    def confirm_assigned(self, added: Iterable[TopicIdPartition]) -> Partitions:
        """Own those of these partitions that are still assigned, and return them."""
        with self.changed:
            owned = self._target.intersection(added) if self._phase is MembershipPhase.JOINED else frozenset()
            self._owned |= owned
            self._is_news = False
            return owned

    def finish_loss(self) -> None:
        """Leave the phase LOST, once the application has given its partitions up.

        Raises:
            CoordinatorError: the group refused the member. The next call of :meth:`subscribe` joins.
        """
        with self.changed:
            self._owned = self._target = frozenset()
            if self._fatal is not None:
                raise self._fatal
            self._phase = MembershipPhase.UNJOINED
            refusal, self._refusal = self._refusal, None
            if refusal is not None:
                raise refusal

    def leave(self) -> ConsumerGroupHeartbeatRequest | None:
        """Leave the group; returns the heartbeat to send, None if the member is not in the group."""
        with self.changed:
            is_known = self._phase is MembershipPhase.JOINED or self._waits_for_join
            self._incarnation += 1
            self._phase = MembershipPhase.UNJOINED if self._fatal is None else MembershipPhase.LOST
            self._owned = self._target = frozenset()
            self._refusal = None
            self.changed.notify_all()
            return self._fields.leaving() if is_known else None

    # ----------------------------------------------------------------------------------------------------------
    # For the heartbeat thread

    def wake_at(self) -> float | None:
        """When the heartbeat thread has to act: a heartbeat is due, or the poll timeout expires. None for never."""
        with self.changed:
            if not self._is_in_group:
                return None
            expires = self._last_poll + self._max_poll_interval
            return expires if self._waits_for_join else min(self._due, expires)

    @property
    def _is_in_group(self) -> bool:
        """Whether it has joined, or is about to."""
        return self._phase in (MembershipPhase.JOINING, MembershipPhase.JOINED)

    @property
    def _waits_for_join(self) -> bool:
        return self._phase is MembershipPhase.JOINING and not self._must_send_all

    def next_heartbeat(self, now: float) -> tuple[Sent, ConsumerGroupHeartbeatRequest] | None:
        """The heartbeat to send now, if one is due."""
        with self.changed:
            if not self._is_in_group or self._waits_for_join or now < self._due:
                return None
            self._last_number += 1
            sent = Sent(self._last_number, self._epoch, self._incarnation)
            self._due = now + self._interval
            if self._must_send_all:
                self._must_send_all = False
                self._last_full = sent.number
                return sent, self._fields.full(sent.epoch, self._subscription, self._owned | self._target)
            return sent, self._fields.changes(sent.epoch, self._subscription)

    def expire_poll(self, now: float) -> ConsumerGroupHeartbeatRequest | None:
        """Leave the group if the poll timeout has expired; returns the heartbeat to send."""
        with self.changed:
            if not self._is_in_group or now < self._last_poll + self._max_poll_interval:
                return None
            self._lose()
            return self._fields.leaving()

    # ----------------------------------------------------------------------------------------------------------
    # For the reader thread

    def apply_answer(self, sent: Sent, answer: ConsumerGroupHeartbeatResponse, now: float) -> bool:
        """Apply the answer to a heartbeat; returns whether the assignment has changed."""
        with self.changed:
            if self._is_outdated(sent):
                return False
            self._failures = 0
            self._phase, self._epoch = MembershipPhase.JOINED, answer.member_epoch
            if answer.heartbeat_interval_ms > 0:
                self._interval = answer.heartbeat_interval_ms / 1000
            self._due = min(self._due, now + self._interval)
            if sent.epoch == JOIN_EPOCH:
                self._is_news = True
            changed = answer.assignment is not None and self._assign(
                frozenset(
                    TopicIdPartition(listed.topic_id, partition)
                    for listed in answer.assignment.topic_partitions
                    for partition in listed.partitions
                ),
                now,
            )
            self.changed.notify_all()
            return changed

    def _assign(self, target: Partitions, now: float) -> bool:
        claimed = self._owned | self._target
        if target == self._target:
            return False
        self._target, self._is_news = target, True
        self._must_confirm = self._must_confirm or not claimed <= target
        self._confirm_when_revoked(now)
        return True

    def _confirm_when_revoked(self, now: float) -> None:
        if self._must_confirm and self._owned <= self._target:
            self._must_confirm = False
            self._must_send_all = True
            self._due = now

    def apply_error(self, sent: Sent, failure: CoordinatorError, now: float) -> Effect:
        """Apply an error answer to a heartbeat, or that it has no answer."""
        with self.changed:
            if sent.incarnation != self._incarnation:
                return Effect.IGNORED
            match failure.error:
                case Error.FENCED_INSTANCE_ID:
                    return self.fence(failure)
                case Error.UNKNOWN_MEMBER_ID:
                    return self._lose()
                case Error.GROUP_ID_NOT_FOUND if sent.epoch != JOIN_EPOCH:
                    return self._lose()
                case Error.FENCED_MEMBER_EPOCH:
                    is_older = self._is_outdated(sent) or sent.epoch != self._epoch
                    return Effect.IGNORED if is_older else self._lose()
                case _ if self._is_outdated(sent):
                    return Effect.IGNORED
                case _ if failure.retriable:
                    return self._retry(now)
                case _:
                    self._refusal = failure
                    self._lose()
                    return Effect.REFUSED

    def fence(self, failure: CoordinatorError) -> Effect:
        """End the membership for good: another process uses this member's instance id."""
        with self.changed:
            self._fatal = self._fatal or failure
            self._lose()
            return Effect.FENCED

    def lose(self, sent: Generation) -> bool:
        """Take notice that the group does not know the member; returns whether it was still in this generation."""
        with self.changed:
            is_current = sent == self.generation and sent.is_member
            if is_current:
                self._lose()
            return is_current

    def _is_outdated(self, sent: Sent) -> bool:
        return sent.incarnation != self._incarnation or sent.number < self._last_full

    def _lose(self) -> Effect:
        self._incarnation += 1
        self._phase = MembershipPhase.LOST
        self._failures = 0
        self.changed.notify_all()
        return Effect.LOST

    def _retry(self, now: float) -> Effect:
        """Send all fields with the next heartbeat, after a backoff: nobody knows what became of this one."""
        backoff = min(self._retry_backoff * 2**self._failures, self._retry_backoff_max)
        self._failures += 1
        self._must_send_all = True
        self._due = now + backoff
        self.changed.notify_all()
        return Effect.RETRIED
