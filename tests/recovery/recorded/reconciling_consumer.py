"""A consumer of the consumer group protocol (KIP-848) that records its operations: heartbeats, commits and fetches.

Its state machine is that of the project's client, which reads no clock and sends nothing; so a run judges that one too.
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    NO_GENERATION,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicIdPartitions,
)
from streaming.client.errors import CoordinatorError
from streaming.client.membership.consumer_groups.membership import ConsumerMembership, MembershipPhase, Sent
from streaming.client.membership.consumer_groups.types import TopicSubscription
from streaming.client.membership.membership_state import Generation
from streaming.client.membership.types import MemberConfig
from tests.recovery.checker.history import Function
from tests.recovery.recorded.member import RecordedMember
from tests.recovery.recorded.requests import Complete
from tests.recovery.recorded.surroundings import GroupPlan, Network

REVOCATION_MS = 100
"""About how long the application takes to give partitions up."""


class ReconcilingConsumer(RecordedMember):
    """A consumer of the consumer group protocol, with its name as its member id."""

    def __init__(self, network: Network, plan: GroupPlan, name: str, instance: str | None = None) -> None:
        super().__init__(network, plan, name, instance)
        self._member_id = name
        config = MemberConfig(group_id=plan.group, group_instance_id=instance, rebalance_timeout_ms=plan.rebalance_ms)
        self._membership = ConsumerMembership(name, config, max_poll_interval=float("inf"))
        self._subscription = TopicSubscription.of([plan.topic], topics=[plan.described])
        self._is_revoking = False
        self._plans = 0
        self._world.after(self._world.about(400), self.join)
        self._commit_later()

    @property
    def is_settled(self) -> bool:
        """Whether it is in the group, and has what it was assigned last."""
        return self._membership.phase is MembershipPhase.JOINED and self._membership.next_change() is None

    @property
    def leaves_when_it_ends(self) -> bool:
        """A static member leaves too, for a while (epoch -2)."""
        return True

    def leave(self) -> None:
        """Leave the group, and do nothing any more."""
        self._give_up(self._owned)
        body = self._membership.leave()
        if body is None:
            self.kill()
            return
        details = {"member": self._member_id, "instance": self.instance, "generation": body.member_epoch}
        self._send_last(Function.CONSUMER_HEARTBEAT, body, details, lambda answer: answer.error_code)

    def join(self) -> None:
        """Join the group, unless the member is in it."""
        if self._postponed(self.join):
            return
        self._membership.subscribe(self._subscription, self._seconds)
        self._go_on()

    # ---- heartbeats ----------------------------------------------------------------------------------------

    @property
    def _seconds(self) -> float:
        return self._world.now / 1000

    def _go_on(self) -> None:
        """Do what is due, and plan when to look again."""
        if self._postponed(self._go_on):
            return
        self._follow()
        heartbeat = self._membership.next_heartbeat(self._seconds)
        if heartbeat is not None:
            self._send_heartbeat(*heartbeat)
        wake_at = self._membership.wake_at()
        if wake_at is None or not isfinite(wake_at):
            return
        self._plans += 1
        plan = self._plans
        wait_ms = max(1, round(wake_at * 1000) - self._world.now)
        self._world.after(wait_ms, lambda: self._go_on() if plan == self._plans else None)

    def _send_heartbeat(self, sent: Sent, body: ConsumerGroupHeartbeatRequest) -> None:
        sent_ms = self._world.now

        def answered(answer: ConsumerGroupHeartbeatResponse, complete: Complete) -> None:
            self._complete(answer, complete)
            self._accepted(sent_ms)
            self._membership.apply_answer(sent, answer, self._seconds)
            self._take_generation()
            self._go_on()

        def failed(error: Error) -> None:
            self._membership.apply_error(sent, CoordinatorError(error, "the heartbeat"), self._seconds)
            self._take_generation()
            if error is Error.FENCED_INSTANCE_ID:
                self._lose()
                self.kill()
            else:
                self._go_on()

        self._send(
            Function.CONSUMER_HEARTBEAT,
            body,
            answered,
            on_error=failed,
            generation=sent.epoch,
            value=self._plan.positions_of(_numbers(body.topic_partitions or ())),
            lists_partitions=body.topic_partitions is not None,
            session_ms=self._plan.session_ms,
            rebalance_ms=self._plan.rebalance_ms,
        )

    def _complete(self, answer: ConsumerGroupHeartbeatResponse, complete: Complete) -> None:
        assigned = answer.assignment
        complete(
            member=answer.member_id or "",
            generation=answer.member_epoch,
            value=[] if assigned is None else self._plan.positions_of(_numbers(assigned.topic_partitions)),
            lists_partitions=assigned is not None,
        )

    def _take_generation(self) -> None:
        former, self._generation = self._generation, self._membership.generation.generation_id
        if self._generation not in (former, NO_GENERATION):
            self._commit_late_sometimes()

    # ---- the assignment ------------------------------------------------------------------------------------

    def _follow(self) -> None:
        """Take what is assigned, and begin to give up what is not any more."""
        if self._membership.phase is MembershipPhase.LOST:
            self._lose()
            return
        change = self._membership.next_change()
        if change is None or self._is_revoking:
            return
        if change.revoked:
            self._is_revoking = True
            self._world.after(self._world.about(REVOCATION_MS), self._revoke)
            return
        added = {partition.partition for partition in self._membership.confirm_assigned(change.added)}
        if added:
            self._attempt += 1
            self._own(added)

    def _revoke(self) -> None:
        if self._postponed(self._revoke):
            return
        self._is_revoking = False
        change = self._membership.next_change()
        if change is not None and change.revoked:
            self._commit()
            self._give_up({partition.partition for partition in change.revoked})
            self._membership.confirm_revoked(change.revoked, self._seconds)
        self._go_on()

    def _lose(self) -> None:
        self._give_up(self._owned)
        self._generation, self._committed = NO_GENERATION, None
        self._attempt += 1
        try:
            self._membership.finish_loss()
        except CoordinatorError:
            # Another process still has the instance id, or the classic group cannot be upgraded yet.
            self._world.after(self._plan.heartbeat_ms, self.join)
        else:
            self._membership.subscribe(self._subscription, self._seconds)

    def _on_error(self, f: Function, error: Error, body: Any, sent: Mapping[str, Any]) -> None:
        if error is Error.UNKNOWN_MEMBER_ID:
            self._membership.lose(Generation(sent["generation"], self._member_id))
            self._go_on()


def _numbers(listed: Sequence[TopicIdPartitions]) -> set[int]:
    """The partitions in a message; all of them are of the plan's topic."""
    return {partition for entry in listed for partition in entry.partitions}
