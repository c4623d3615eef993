"""TopicsDescribed, an event that Kafka's wire protocol does not have: topics have appeared or changed.

A broker's coordinator learns that from the cluster's metadata. Here whoever watches the cluster, such as the gateway,
sends this event to each group that assigns partitions of such a topic.
"""

from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.groups.group_type import type_of
from coordinator_logic.messages import TopicsDescribedRequest, TopicsDescribedResponse
from coordinator_logic.turn import Turn


def handle(turn: Turn, request: Request, body: TopicsDescribedRequest) -> None:
    """Remember the topics that matter to the group."""
    group = turn.existing
    error = Error.NONE if group is None else type_of(group).learn_topics(turn, body.topics)
    turn.reply(request.address, TopicsDescribedResponse(error))
