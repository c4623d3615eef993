"""FindCoordinator: the gateway answers for groups, the real broker for transactional ids.

v0 has one group id as its key. v1 adds a key type: 0 for a group, 1 for a transactional id. v4 has several keys of one
type. v6 adds a third type, share partitions.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from kio.index import load_entity_module
from kio.schema.errors import ErrorCode
from kio.static.constants import EntityType
from kio.static.protocol import Entity, RequestPayload

from streaming.gateway.proxy.admission.request_memory import ALWAYS_BYTES
from streaming.gateway.wire.answer_room import await_answer_room
from streaming.gateway.wire.brokers import NO_BROKER, Address, Broker
from streaming.gateway.wire.client_request import ClientRequest
from streaming.gateway.wire.loop_share import LoopShare
from streaming.gateway.wire.steps import LazyList, Steps

GROUP, TRANSACTION = 0, 1
NONE_FOUND = Broker(NO_BROKER, Address("", NO_BROKER))

COORDINATOR_BYTES = 100
"""What the answer says of a key; the key itself counts with the request."""

CoordinatorOf = Callable[[str], Broker | None]
"""Returns a group's coordinator at its advertised address; None while no broker is known."""


def is_for_transactions(request: RequestPayload) -> bool:
    """Whether the request is for transactional ids, so that the real broker has to answer it."""
    return getattr(request, "key_type", GROUP) == TRANSACTION


async def find_coordinators(coordinator_of: CoordinatorOf, loop_share: LoopShare, request: ClientRequest) -> Entity:
    """Answer for groups, see :func:`answer_for_groups`. A long answer waits for room."""
    size = COORDINATOR_BYTES * len(getattr(request.payload, "coordinator_keys", ()))
    if size > ALWAYS_BYTES:
        await await_answer_room(size)
    return await loop_share.complete(request.caller, answer_for_groups(request.payload, coordinator_of))


def answer_for_groups(request: RequestPayload, coordinator_of: CoordinatorOf) -> Steps[Entity]:
    """Make the response for groups in steps; INVALID_REQUEST for keys of any other type. Each key is answered once."""
    body: Any = request
    module: Any = load_entity_module("find_coordinator", body.__version__, EntityType.response)
    is_group = getattr(body, "key_type", GROUP) == GROUP
    if hasattr(body, "coordinator_keys"):
        keys: dict[str, None] = {}
        for key in body.coordinator_keys:
            keys[key] = None
            yield

        def coordinator(key: str) -> Any:
            return module.Coordinator(key=key, error_message=None, **_fields(is_group, key, coordinator_of))

        return module.FindCoordinatorResponse(throttle_time=timedelta(0), coordinators=LazyList(keys, coordinator))  # type: ignore[no-any-return]
    throttle = {} if body.__version__ == 0 else {"throttle_time": timedelta(0), "error_message": None}
    return module.FindCoordinatorResponse(**throttle, **_fields(is_group, body.key, coordinator_of))  # type: ignore[no-any-return]


def _fields(is_group: bool, key: str, coordinator_of: CoordinatorOf) -> dict[str, Any]:
    found = coordinator_of(key) if is_group else None
    error = ErrorCode.none if found else ErrorCode.coordinator_not_available if is_group else ErrorCode.invalid_request
    node_id, (host, port) = found or NONE_FOUND
    return {"error_code": error, "node_id": node_id, "host": host, "port": port}
