"""FindCoordinator (API key 10).

v0-3: one key, answered at the top level. v4+ (KIP-699): several keys, an entry each.

Over topics a group's coordinator is a partition of the request topic: ``node_id`` and ``port`` are that
partition, ``host`` is the topic's name. Groups only: transactions have a coordinator in the brokers, share groups
are not served.
"""

from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.handlers.api import Api
from coordinator_logic.messages import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from coordinator_logic.partitioning import partition_for
from coordinator_logic.turn import Turn

GROUP_KEY_TYPE = 0
FIRST_BATCH_VERSION = 4


def handle(turn: Turn, request: Request, body: FindCoordinatorRequest) -> None:
    """Answer with the partition of each key; INVALID_REQUEST for a key type other than group."""
    if body.key_type != GROUP_KEY_TYPE:
        refusal = refuse(body, request.address.version, Error.INVALID_REQUEST)
        turn.reply(request.address, refusal, Error.INVALID_REQUEST)
        return
    topic, partitions = turn.config.requests_topic, turn.config.requests_partitions
    if request.address.version >= FIRST_BATCH_VERSION:
        found = [(key, partition_for(key, partitions)) for key in body.coordinator_keys]
        response = FindCoordinatorResponse(
            coordinators=[Coordinator(key, partition, topic, partition) for key, partition in found]
        )
    else:
        partition = partition_for(body.key, partitions)
        response = FindCoordinatorResponse(node_id=partition, host=topic, port=partition)
    turn.reply(request.address, response)


def refuse(body: FindCoordinatorRequest, version: int, error: Error) -> FindCoordinatorResponse:
    """One error for the whole request: on every key (v4+), or at the top level."""
    if version < FIRST_BATCH_VERSION:
        return FindCoordinatorResponse(error_code=error, error_message=error.name)
    return FindCoordinatorResponse(
        coordinators=[Coordinator(key, -1, "", -1, error, error.name) for key in body.coordinator_keys]
    )


API = Api("FindCoordinator", 10, 0, 6, FindCoordinatorRequest, FindCoordinatorResponse, handle, refuse)
