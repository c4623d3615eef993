"""From which request on a rebuilt checkpoint reads.

The journal names the request of each change, but not the requests that changed nothing, and not the batch. A batch
writes its answers and its journal side by side, so a coordinator that was killed may have answered requests whose
entries are missing. They were all in its last batch. So the job reads again from before that batch: from the end of a
batch that is known to be complete, or, if that is later, as many requests before the last one that the journal names as
a batch may read. Each group leaves out those that its entries name, and those before them
(:attr:`coordinator_logic.group.Group.applied_until`). All others take effect once: they changed nothing before, or
their change is not in the journal.
"""

from collections.abc import Mapping

from streaming.job.backups.topic_reach import PartitionReach


def start_positions(
    requests: Mapping[int, PartitionReach], complete: Mapping[int, int], newest: Mapping[int, int], batch_size: int
) -> dict[int, int]:
    """The offset of the first request to read, by partition.

    Args:
        requests: What the topic holds.
        complete: The offset after the last request of a batch that is complete, such as the backup's.
        newest: The last request that the journal names.
        batch_size: How many requests a batch may read.
    """
    positions = {}
    for partition, reach in requests.items():
        # A partition without a change may have any number of unread requests.
        wanted = max(complete.get(partition, 0), newest.get(partition, -1) + 1 - batch_size)
        positions[partition] = min(max(wanted, reach.first), reach.end)
    return positions


def cut_partitions(
    requests: Mapping[int, PartitionReach], newest: Mapping[int, int], *, is_another_topic: bool = False
) -> dict[int, int]:
    """The partitions that end before a request that the journal names, with that request's offset.

    The topic was deleted and created again, or an unclean election has cut it. Offsets do not tell which of its present
    requests the journal names. If ``is_another_topic``, that is known of all partitions, however long they are now.
    """
    return {
        partition: offset
        for partition, offset in newest.items()
        if partition in requests and (is_another_topic or requests[partition].end <= offset)
    }
