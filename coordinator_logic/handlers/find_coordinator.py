"""FindCoordinator: the partition of the request topic that serves a group.

``node_id`` and ``port`` are the partition, ``host`` is the topic's name. Only groups are served: the coordinators of
transactions are in the brokers, and share groups are not supported.
"""

from coordinator_logic.apis import FIND_COORDINATOR_FIRST_VERSION_WITH_KEYS
from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.messages import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from coordinator_logic.partitioning import partition_for
from coordinator_logic.turn import Turn

GROUP_KEY_TYPE = 0


def handle(turn: Turn, request: Request, body: FindCoordinatorRequest) -> None:
    """Answer with the partition of each key, or INVALID_REQUEST for a key type other than group."""
    if body.key_type != GROUP_KEY_TYPE:
        refusal = refuse(body, request.address.version, Error.INVALID_REQUEST)
        turn.reply(request.address, refusal, Error.INVALID_REQUEST)
        return
    topic, partitions = turn.config.requests_topic, turn.config.requests_partitions
    if request.address.version >= FIND_COORDINATOR_FIRST_VERSION_WITH_KEYS:
        found = {key: partition_for(key, partitions) for key in dict.fromkeys(body.coordinator_keys)}
        coordinators = {key: Coordinator(key, partition, topic, partition) for key, partition in found.items()}
        response = FindCoordinatorResponse(coordinators=[coordinators[key] for key in body.coordinator_keys])
    else:
        partition = partition_for(body.key, partitions)
        response = FindCoordinatorResponse(node_id=partition, host=topic, port=partition)
    turn.reply(request.address, response)


def refuse(body: FindCoordinatorRequest, version: int, error: Error) -> FindCoordinatorResponse:
    """Report one error for the whole request, on every key (v4+) or at the top level."""
    if version < FIND_COORDINATOR_FIRST_VERSION_WITH_KEYS:
        return FindCoordinatorResponse(error_code=error, error_message=error.name)
    return FindCoordinatorResponse(
        coordinators=[Coordinator(key, -1, "", -1, error, error.name) for key in body.coordinator_keys]
    )
