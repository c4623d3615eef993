"""Topics that were deleted, as a group is told of them: by name and, where the sender knows them, by id.

A topic that is created again under the name of a deleted one is another topic: only the id tells them apart.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple, Self

from coordinator_logic.messages import TopicsDeletedRequest


class DeletedTopics(NamedTuple):
    """The ids of deleted topics, by name. Without an id, every topic of the name was deleted."""

    ids: Mapping[str, Collection[str]]

    @classmethod
    def of(cls, body: TopicsDeletedRequest) -> Self:
        """The topics of a request, in its order."""
        return cls({name: body.topic_ids.get(name, ()) for name in body.topics})

    def includes(self, name: str, topic_id: str) -> bool:
        """Whether the topic with this name and id is one of them."""
        ids = self.ids.get(name)
        return ids is not None and (not ids or topic_id in ids)
