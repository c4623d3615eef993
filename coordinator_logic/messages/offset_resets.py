"""The messages with which an operator sets a group's offsets: ResetOffsets. Kafka's protocol has no such API."""

from coordinator_logic.messages.base import NO_LEADER_EPOCH, NO_OFFSET, Int16, Int32, Int64, Message, OptionalTopicId


class PartitionToReset(Message, frozen=True):
    """The new offset of a partition; -1 deletes its offset, a committed one and those in open transactions.

    ``expected_offset`` is the committed offset that the operator has seen, -1 for none; null accepts any offset.
    """

    partition_index: Int32
    offset: Int64
    expected_offset: Int64 | None = None
    leader_epoch: Int32 = NO_LEADER_EPOCH
    metadata: str = ""


class TopicToReset(Message, frozen=True, omit_defaults=True):
    """The partitions of one topic. ``topic_id`` is stored with the offsets; empty if it is not known."""

    name: str
    partitions: list[PartitionToReset]
    topic_id: OptionalTopicId = ""


class ResetOffsetsRequest(Message, frozen=True):
    """Set offsets of a group, all of them or none.

    A group with members is refused unless ``force`` is set: then the members lose their generation or epoch, and with
    it their partitions, so that they fetch the new offsets when they have joined again. ``lists_all``: refuse the
    request if the group has an offset of a partition that it does not list. ``reason`` goes into the journal.
    """

    group_id: str
    topics: list[TopicToReset]
    force: bool = False
    lists_all: bool = False
    reason: str = ""


class ResetPartition(Message, frozen=True):
    """The offset of a partition that was committed before the request, -1 for none, and the partition's error.

    The error is INVALID_UPDATE_VERSION if that is not the expected offset, and UNSTABLE_OFFSET_COMMIT if an open
    transaction has an offset of the partition and the request expects a certain offset.
    """

    partition_index: Int32
    committed_offset: Int64 = NO_OFFSET
    error_code: Int16 = 0


class ResetTopic(Message, frozen=True):
    """The results for the partitions of one topic, in the order of the request."""

    name: str
    partitions: list[ResetPartition]


class ResetOffsetsResponse(Message, frozen=True):
    """The results. With an ``error_code`` nothing was changed.

    ``rejoining`` is the number of members that have to join again. ``topics`` has all partitions of the request, then
    those that it should have listed; it is empty if the group was not examined.
    """

    error_code: Int16 = 0
    error_message: str | None = None
    rejoining: Int32 = 0
    topics: list[ResetTopic] = []
