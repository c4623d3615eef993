"""The committed offset of a partition."""

from collections.abc import MutableMapping

import msgspec


class CommittedOffset(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The committed offset of a partition. Times are in milliseconds since the epoch.

    ``expire_timestamp`` is None unless the commit requested a retention time. ``sequence`` is the number of the journal
    entry that committed the offset; when a transaction ends, the offset with the higher number is kept. ``topic_id`` is
    the id of the topic as of the commit, in Kafka's text form; empty if the commit did not say it.
    """

    offset: int
    leader_epoch: int | None
    metadata: str
    commit_timestamp: int
    expire_timestamp: int | None
    sequence: int = 0
    topic_id: str = ""

    def is_of(self, topic_id: str) -> bool:
        """Whether this may be an offset of the topic with that id: of any topic if one of the two ids is empty.

        The rule is that of Kafka's ``OffsetMetadataManager``. A topic that is created again under its name has another
        id, and the offsets of its namesake are not its own.
        """
        return self.topic_id == topic_id or not self.topic_id or not topic_id


Offsets = MutableMapping[str, MutableMapping[int, CommittedOffset]]
"""Committed offsets by topic and partition."""
