"""What recorded members of both protocols have in common: pauses and ends, requests, offsets."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from coordinator_logic.errors import Error
from coordinator_logic.messages import NO_GENERATION, RequestBody
from tests.recovery.checker.history import Function, Position
from tests.recovery.recorded.requests import OnAnswer, commit, fetch
from tests.recovery.recorded.surroundings import Answer, GroupPlan, Network

LATE_COMMIT_SHARE = 0.3
"""After how many of the rebalances a member commits in the generation before, or with the epoch before."""


class RecordedMember:
    """A member. A paused one does nothing, and finds its answers when it goes on.

    ``instance``: the instance id of a static member.
    """

    def __init__(self, network: Network, plan: GroupPlan, name: str, instance: str | None = None) -> None:
        self.name = name
        self.instance = instance
        self.is_dead = False
        self._network = network
        self._world = network.world
        self._plan = plan
        self._member_id = ""
        self._generation = NO_GENERATION
        self._attempt = 0
        """Counts what makes the answers to earlier fetches outdated."""
        self._accepted_ms = -1
        self._owned: set[int] = set()
        self._positions: dict[int, int] = {}
        self._committed: tuple[int, list[Position]] | None = None
        self._paused_until = 0

    @property
    def is_settled(self) -> bool:
        """Whether it is assigned, and does not join again."""
        raise NotImplementedError

    @property
    def leaves_when_it_ends(self) -> bool:
        """Whether an orderly end is a request to the group."""
        raise NotImplementedError

    @property
    def owned(self) -> frozenset[int]:
        """The partitions that it has."""
        return frozenset(self._owned)

    def has_been_accepted_since(self, ms: int) -> bool:
        """Whether a heartbeat that was sent at or after this time of the world has been accepted."""
        return self._accepted_ms >= ms

    # ---- faults --------------------------------------------------------------------------------------------

    def pause(self, ms: int) -> None:
        """Do nothing for a time, as in a long garbage collection."""
        self._world.fault(f"{self.name} pauses")
        self._paused_until = self._world.now + ms

    def kill(self) -> None:
        """Do nothing any more."""
        self.is_dead = True
        self._world.recorder.note(self.name, Function.STOPPED, self._plan.group)

    def leave(self) -> None:
        """Leave the group, and do nothing any more."""
        raise NotImplementedError

    def _send_last(
        self, f: Function, body: RequestBody, details: Mapping[str, Any], error_of: Callable[[Any], int]
    ) -> None:
        """Send a request, and do nothing any more but record its end; ``error_of`` the answer's body."""
        self.is_dead = True
        plan = self._plan
        call = self._network.send(self.name, plan.group, f, body, plan.request_timeout_ms, details, version=None)

        def answered(response: Answer, answer: str) -> None:
            error = response.error_code or error_of(response.body)
            if error == Error.NONE:
                call.operation.ok(answer=answer)
            else:
                call.operation.fail(error, answer=answer)
            self.kill()

        def gave_up() -> None:
            call.operation.info()
            self.kill()

        call.answered, call.gave_up = answered, gave_up

    # ---- requests ------------------------------------------------------------------------------------------

    def _send(
        self,
        f: Function,
        body: Any,
        on_answer: OnAnswer,
        *,
        on_error: Callable[[Error], None] | None = None,
        version: int | None = None,
        **details: Any,
    ) -> None:
        """Send a request. ``on_error`` takes the error of the answer, or REQUEST_TIMED_OUT when there is none."""
        details = {"member": self._member_id, "generation": self._generation, "instance": self.instance} | details
        call = self._network.send(self.name, self._plan.group, f, body, self._timeout_ms(f), details, version)

        def answered(response: Answer, answer: str) -> None:
            if self._postponed(lambda: answered(response, answer)):
                return
            seen = {"answer": answer, "appended": call.appended_ns}
            error = Error(response.error_code or getattr(response.body, "error_code", 0))
            if error is Error.NONE:
                on_answer(response.body, partial(call.operation.ok, **seen))
                return
            call.operation.fail(error, **seen, **self._seen_in_error(response.body, details))
            if on_error is None:
                self._on_error(f, error, response.body, details)
            else:
                on_error(error)

        def gave_up() -> None:
            if self._postponed(gave_up):
                return
            call.operation.info(appended=call.appended_ns)
            if on_error is None:
                self._gave_up(f)
            else:
                on_error(Error.REQUEST_TIMED_OUT)

        call.answered, call.gave_up = answered, gave_up

    def _timeout_ms(self, f: Function) -> int:
        plan = self._plan
        return plan.join_timeout_ms if f in (Function.JOIN, Function.SYNC) else plan.request_timeout_ms

    def _seen_in_error(self, body: Any, sent: Mapping[str, Any]) -> dict[str, Any]:
        """Fields of the completion that an error answer has."""
        return {}

    def _on_error(self, f: Function, error: Error, body: Any, sent: Mapping[str, Any]) -> None:
        """Act on an error answer; ``sent`` are the fields of the invocation."""
        raise NotImplementedError

    def _gave_up(self, f: Function) -> None:
        """Act on a request that is not awaited any longer."""
        if f is Function.FETCH:
            self._fetch()

    def _postponed(self, again: Callable[[], None]) -> bool:
        """Whether nothing may happen now: never again, or later."""
        if self.is_dead:
            return True
        if self._paused_until > self._world.now:
            self._world.after(self._paused_until - self._world.now + 1, again)
            return True
        return False

    def _accepted(self, sent_ms: int) -> None:
        """Note that a heartbeat was accepted, which was sent at this time of the world."""
        self._accepted_ms = max(self._accepted_ms, sent_ms)

    # ---- partitions ----------------------------------------------------------------------------------------

    def _own(self, partitions: set[int]) -> None:
        """Own partitions from now on, and fetch their offsets."""
        self._owned = self._owned | partitions
        for partition in partitions - self._positions.keys():
            self._positions[partition] = -1
        self._fetch()

    def _give_up(self, partitions: set[int]) -> None:
        if partitions:
            self._note_revoked(self._member_id, partitions)
            self._owned = self._owned - partitions
            self._positions = {p: offset for p, offset in self._positions.items() if p in self._owned}

    def _note_revoked(self, member: str, partitions: set[int]) -> None:
        value = self._plan.positions_of(partitions)
        self._world.recorder.note(self.name, Function.REVOKED, self._plan.group, member=member, value=value)

    # ---- offsets -------------------------------------------------------------------------------------------

    def _fetch(self) -> None:
        wanted = {partition for partition, offset in self._positions.items() if offset < 0}
        if wanted:
            attempt = self._attempt
            fetch(self._send, self._plan, wanted, lambda positions: self._fetched(positions, attempt))

    def _fetched(self, positions: list[Position], attempt: int) -> None:
        if attempt != self._attempt:
            # Another member may have owned the partitions, and committed, in between.
            self._fetch()
            return
        for position in positions:
            if self._positions.get(position.partition) == -1:
                self._positions[position.partition] = max(position.offset, 0)

    def _commit_later(self) -> None:
        self._world.after(self._world.about(self._plan.commit_ms), self._commit_sometimes)

    def _commit_sometimes(self) -> None:
        if self._postponed(self._commit_sometimes):
            return
        self._commit_later()
        for partition, offset in self._positions.items():
            if offset >= 0:
                self._positions[partition] += self._world.chance.randint(0, 3)
        self._commit()

    def _commit(self) -> None:
        metadata = f"{self.name}-{self._world.now}" if self._plan.has_unique_metadata else ""
        topic = self._plan.topic
        value = [Position(topic, p, offset, metadata) for p, offset in self._positions.items() if offset >= 0]
        if value and self._generation != NO_GENERATION:
            self._committed = (self._generation, value)
            commit(self._send, self._plan, value, self._generation, self._member_id, self.instance)

    def _commit_late_sometimes(self) -> None:
        """Commit the last offsets of an earlier generation or epoch again, in it; to be called when a new one begins.

        A thread of the application does that when it has missed the end.
        """
        former, self._committed = self._committed, None
        if former is None or self._world.chance.random() >= LATE_COMMIT_SHARE or former[0] == self._generation:
            return
        generation, value = former
        again = [Position(p.topic, p.partition, p.offset, f"{p.metadata}, late") for p in value]
        send = partial(self._send, generation=generation)
        commit(send, self._plan, again, generation, self._member_id, self.instance)
