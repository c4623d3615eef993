"""FindCoordinator: a group's coordinator is the gateway itself, a transaction's is the real broker's business.

v0 asks for one group. v1 has a key type: 0 a group, 1 a transactional id. v4 asks for many keys of one type. v6 has a
third type, share partitions.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from kio.index import load_entity_module
from kio.schema.errors import ErrorCode
from kio.static.constants import EntityType
from kio.static.protocol import Entity, RequestPayload

from streaming.gateway.addresses import NOWHERE, Address, Broker

__all__ = ["CoordinatorOf", "answer_for_groups", "asks_for_transactions"]

GROUP, TRANSACTION = 0, 1
NOBODY = Broker(NOWHERE, Address("", NOWHERE))

CoordinatorOf = Callable[[str], Broker | None]
"""The coordinator of a group, at the gateway's address; None while no broker is known."""


def asks_for_transactions(request: RequestPayload) -> bool:
    """Whether the real broker has to answer."""
    return getattr(request, "key_type", GROUP) == TRANSACTION


def answer_for_groups(request: RequestPayload, coordinator_of: CoordinatorOf) -> Entity:
    """The answer for groups; INVALID_REQUEST for keys of a type that is not served."""
    asked: Any = request
    module: Any = load_entity_module("find_coordinator", asked.__version__, EntityType.response)
    is_group = getattr(asked, "key_type", GROUP) == GROUP
    if hasattr(asked, "coordinator_keys"):
        found = [
            module.Coordinator(key=key, error_message=None, **_fields(is_group, key, coordinator_of))
            for key in asked.coordinator_keys
        ]
        return module.FindCoordinatorResponse(throttle_time=timedelta(0), coordinators=tuple(found))  # type: ignore[no-any-return]
    throttle = {} if asked.__version__ == 0 else {"throttle_time": timedelta(0), "error_message": None}
    return module.FindCoordinatorResponse(**throttle, **_fields(is_group, asked.key, coordinator_of))  # type: ignore[no-any-return]


def _fields(is_group: bool, key: str, coordinator_of: CoordinatorOf) -> dict[str, Any]:
    found = coordinator_of(key) if is_group else None
    error = ErrorCode.none if found else ErrorCode.coordinator_not_available if is_group else ErrorCode.invalid_request
    node_id, (host, port) = found or NOBODY
    return {"error_code": error, "node_id": node_id, "host": host, "port": port}
