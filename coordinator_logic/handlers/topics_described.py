"""TopicsDescribed, an event that Kafka's wire protocol does not have: topics have appeared or changed.

A broker's coordinator learns that from the cluster's metadata. Here whoever watches the cluster, such as the gateway,
sends this event to each consumer group that subscribes to such a topic.
"""

from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.groups.consumer.topics import learn_topics
from coordinator_logic.limits import topics_fit
from coordinator_logic.messages import TopicsDescribedRequest, TopicsDescribedResponse
from coordinator_logic.turn import Turn


def handle(turn: Turn, request: Request, body: TopicsDescribedRequest) -> None:
    """Remember the topics that matter to the group; other groups ignore the event."""
    consumer = None if turn.existing is None else turn.existing.consumer
    if consumer is not None and not topics_fit(consumer, body.topics):
        turn.reply(request.address, TopicsDescribedResponse(Error.INVALID_REQUEST))
        return
    if consumer is not None:
        learn_topics(turn, consumer, body.topics)
    turn.reply(request.address, TopicsDescribedResponse())


def refuse(body: TopicsDescribedRequest, version: int, error: Error) -> TopicsDescribedResponse:
    """Report one error for the whole request."""
    return TopicsDescribedResponse(error)
