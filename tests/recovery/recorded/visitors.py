"""Clients that are no members of the group: one reads all offsets, one resets some, one asks for member ids."""

from collections.abc import Callable
from functools import partial
from typing import Any

from coordinator_logic.errors import Error
from coordinator_logic.messages import JoinGroupRequest, Protocol
from tests.recovery.checker.history import Function, Position
from tests.recovery.recorded.requests import OnAnswer, commit, fetch
from tests.recovery.recorded.surroundings import Answer, GroupPlan, Network


class Visitor:
    """Sends requests without being a member, until it is stopped."""

    name = "visitor"

    def __init__(self, network: Network, plan: GroupPlan) -> None:
        self._world = network.world
        self._network = network
        self._plan = plan
        self._is_stopped = False
        self.visit()

    def visit(self) -> None:
        """Send a request, and plan the next visit."""
        raise NotImplementedError

    def stop(self) -> None:
        """Visit no more."""
        self._is_stopped = True

    def _send(self, f: Function, body: Any, on_answer: OnAnswer, *, version: int | None = None, **details: Any) -> None:
        plan = self._plan
        call = self._network.send(self.name, plan.group, f, body, plan.request_timeout_ms, details, version)

        def answered(response: Answer, answer: str) -> None:
            error = response.error_code or getattr(response.body, "error_code", 0)
            if error == Error.NONE:
                on_answer(response.body, partial(call.operation.ok, answer=answer))
            else:
                call.operation.fail(error, answer=answer)

        call.answered = answered
        call.gave_up = call.operation.info

    def _again(self, ms: int, visit: Callable[[], None]) -> None:
        self._world.after(self._world.about(ms), lambda: None if self._is_stopped else visit())


class Observer(Visitor):
    """Reads the offsets of all partitions. ``is_up_to_date``: whether the newest read has an answer with offsets."""

    name = "observer"

    def __init__(self, network: Network, plan: GroupPlan) -> None:
        self.is_up_to_date = False
        self._reads = 0
        super().__init__(network, plan)

    def visit(self) -> None:
        """Read all offsets, and plan the next visit."""
        self._again(700, self.visit)
        self.read()

    def read(self) -> None:
        """Read all offsets now."""
        self._reads += 1
        self.is_up_to_date = False
        number = self._reads
        fetch(self._send, self._plan, set(range(self._plan.partitions)), lambda positions: self._has_read(number))

    def _has_read(self, number: int) -> None:
        self.is_up_to_date |= number == self._reads

    def describe(self) -> str:
        """The group that it reads."""
        return self._plan.group


class Administrator(Visitor):
    """Resets offsets. The coordinator refuses it while the group has members."""

    name = "administrator"

    def visit(self) -> None:
        """Reset one offset."""
        self._again(8_000, self.visit)
        chance, plan = self._world.chance, self._plan
        metadata = f"reset at {self._world.now}" if plan.has_unique_metadata else ""
        value = [Position(plan.topic, chance.randrange(plan.partitions), chance.randint(0, 9), metadata)]
        commit(self._send, plan, value, f=Function.RESET)


class Newcomer(Visitor):
    """Asks for a member id again and again, and never comes back with it: each is one that the coordinator generates.

    It has a group of its own, because a rebalance waits for those who were given an id.
    """

    name = "newcomer"

    def visit(self) -> None:
        """Join without a member id, and plan the next visit."""
        self._again(200, self.visit)
        plan = self._plan
        body = JoinGroupRequest(plan.group, plan.session_ms, "consumer", [Protocol("range", b"")], plan.rebalance_ms)
        self._send(Function.ASK, body, lambda _body, complete: complete())
