"""Has the coordinator create a group with the offsets that it has at the brokers."""

from msgspec.structs import replace

from coordinator_logic.apis import TAKE_OVER_OFFSETS
from coordinator_logic.errors import Error
from coordinator_logic.messages import TakeOverOffsetsRequest, TopicToCommit
from streaming.client.errors import coordinator_error, error_of
from streaming.gateway.groups.channel import GroupChannel
from streaming.gateway.security.topic_catalog import TopicCatalog
from streaming.gateway.wire.client_request import Caller

ANSWER_SECONDS = 60.0
"""How long a lookup waits for the coordinator, which may be restarting. A later lookup may send the request again."""


async def take_over(
    channel: GroupChannel, catalog: TopicCatalog, caller: Caller, group_id: str, topics: list[TopicToCommit]
) -> None:
    """Send TakeOverOffsets and wait for the response. Raises CoordinatorError without success.

    The brokers delete the offsets of a topic with the topic: theirs are of those that exist now.
    """
    found = await catalog.find_now([topic.name for topic in topics])
    ids = {name: topic.topic_id for name, topic in found.items()}
    with_ids = [replace(topic, topic_id=ids.get(topic.name, "")) for topic in topics]
    api, body = TAKE_OVER_OFFSETS, TakeOverOffsetsRequest(group_id, with_ids)
    envelope = await channel.send(group_id, api.name, api.max_version, body, caller, ANSWER_SECONDS).response
    if envelope.error_code != Error.NONE:
        raise coordinator_error(error_of(envelope.error_code), envelope.error_message or f"{api.name} was refused")
