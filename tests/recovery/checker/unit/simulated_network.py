"""The network between clients and the coordinator: the requests of a client arrive in order, late, or their answers
never."""

from collections.abc import Callable, Mapping
from typing import Any

from coordinator_logic.apis import APIS
from coordinator_logic.events import Place, ReplyAddress, Request, Response
from coordinator_logic.messages import RequestBody
from tests.recovery.checker.history import Function, OpenOperation
from tests.recovery.checker.operations import NS_PER_MS
from tests.recovery.checker.unit.simulated_coordinator import Defects, SimulatedCoordinator
from tests.recovery.checker.unit.simulation import World

GROUP = "billing"

API_OF = {
    Function.JOIN: "JoinGroup",
    Function.SYNC: "SyncGroup",
    Function.HEARTBEAT: "Heartbeat",
    Function.LEAVE: "LeaveGroup",
    Function.COMMIT: "OffsetCommit",
    Function.FETCH: "OffsetFetch",
    Function.RESET: "OffsetCommit",
}


class Call:
    """A request that was sent. ``answered`` and ``gave_up`` are the client's functions for its end."""

    def __init__(self, client: str, operation: OpenOperation, correlation_id: str) -> None:
        self.client = client
        self.operation = operation
        self.correlation_id = correlation_id
        self.appended_ns = 0
        self.is_open = True
        self.answered: Callable[[Response, str], None]
        self.gave_up: Callable[[], None]


class Network:
    """Carries requests and answers."""

    def __init__(self, world: World, defects: Defects | None = None) -> None:
        self.world = world
        self.coordinator = SimulatedCoordinator(world, self._carry_back, defects)
        self._calls: dict[str, Call] = {}
        self._last_append: dict[str, int] = {}

    def send(
        self,
        client: str,
        f: Function,
        body: RequestBody,
        timeout_ms: int,
        details: Mapping[str, Any],
        version: int | None,
    ) -> Call:
        """Send a request, in the API's newest version for None; the caller sets the call's functions."""
        world = self.world
        correlation_id = f"c-{len(self._calls)}"
        operation = world.recorder.invoke(client, f, GROUP, correlation_id=correlation_id, **details)
        call = self._calls[correlation_id] = Call(client, operation, correlation_id)
        delay = world.chance.choice((1, 5, 20, 50, 100))
        if world.chance.random() < 0.01:
            delay = 4_000
        # An older request of a client never lands behind a newer one.
        at = self._last_append[client] = max(world.now + delay, self._last_append.get(client, 0) + 1)
        api = API_OF[f]
        number = APIS[api].max_version if version is None else version

        def request(place: Place) -> Request:
            call.appended_ns = (world.now + 1) * NS_PER_MS
            address = ReplyAddress(api, number, correlation_id, 0, place.timestamp)
            return Request(place, address, client, "/127.0.0.1", body)

        world.after(at - world.now, lambda: self.coordinator.append(GROUP, request))
        world.after(timeout_ms, lambda: self._give_up(call))
        return call

    def _give_up(self, call: Call) -> None:
        if call.is_open:
            call.is_open = False
            call.gave_up()

    def _carry_back(self, correlation_id: str, response: Response, answer: str) -> None:
        world = self.world
        if world.chance.random() >= world.plan.lost_answers:
            world.after(world.about(20), lambda: self._arrive(self._calls[correlation_id], response, answer))

    def _arrive(self, call: Call, response: Response, answer: str) -> None:
        if call.is_open:
            call.is_open = False
            call.answered(response, answer)
        else:
            self.world.recorder.note(
                "reader", Function.ANSWER, GROUP, correlation_id=call.correlation_id, answer=answer
            )
