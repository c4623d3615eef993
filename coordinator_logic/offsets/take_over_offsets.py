"""TakeOverOffsets, an event that Kafka's wire protocol does not have: a group begins with offsets from elsewhere.

A gateway sends it when it meets a group that this coordinator has never had, but the brokers' coordinator has. The
offsets count as committed now: the brokers tell nobody when they were.
"""

from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.messages import TakeOverOffsetsRequest, TakeOverOffsetsResponse
from coordinator_logic.offsets.committing import offset_record
from coordinator_logic.records import OffsetsCommitted
from coordinator_logic.turn import Turn

REASON = "taken over from the brokers' group coordinator"


def handle(turn: Turn, request: Request, body: TakeOverOffsetsRequest) -> None:
    """Create the group with these offsets, unless it exists.

    The size of the metadata is not checked: the brokers have it already.
    """
    if not body.group_id:
        turn.reply(request.address, TakeOverOffsetsResponse(Error.INVALID_GROUP_ID))
        return
    if turn.existing is not None:
        turn.reply(request.address, TakeOverOffsetsResponse())
        return
    turn.create_group()
    offsets = [
        offset_record(topic, partition, commit_timestamp=turn.now, expire_timestamp=None)
        for topic in body.topics
        for partition in topic.partitions
    ]
    turn.record(OffsetsCommitted(offsets, REASON))
    turn.reply(request.address, TakeOverOffsetsResponse(taken_over=True))
