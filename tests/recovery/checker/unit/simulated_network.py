"""The network between clients and the coordinator: the requests of a client arrive in order, late, or their answers
never."""

from collections.abc import Mapping
from typing import Any

from coordinator_logic.apis import APIS
from coordinator_logic.events import Place, ReplyAddress, Request, Response
from coordinator_logic.messages import RequestBody
from tests.recovery.checker.history import Function
from tests.recovery.checker.operations import NS_PER_MS
from tests.recovery.checker.unit.simulated_coordinator import Defects, SimulatedCoordinator
from tests.recovery.checker.unit.simulation import World
from tests.recovery.recorded.surroundings import API_OF, Call


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
        group: str,
        f: Function,
        body: RequestBody,
        timeout_ms: int,
        details: Mapping[str, Any],
        version: int | None,
    ) -> Call:
        """Send a request, in the API's newest version for None; the caller sets the call's functions."""
        world = self.world
        correlation_id = f"c-{len(self._calls)}"
        operation = world.recorder.invoke(client, f, group, correlation_id=correlation_id, **details)
        call = self._calls[correlation_id] = Call(client, group, operation, correlation_id)
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

        world.after(at - world.now, lambda: self.coordinator.append(group, request))
        world.after(timeout_ms, call.give_up)
        return call

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
                "reader", Function.ANSWER, call.group, correlation_id=call.correlation_id, answer=answer
            )
