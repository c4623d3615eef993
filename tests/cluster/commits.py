"""What a group has committed at a job."""

from coordinator_logic.messages import GroupToFetch
from tests.support.coordinator_process import CoordinatorProcess, patient_client


def committed_offset(coordinator: CoordinatorProcess, group: str) -> int:
    """What the group has committed for the partition of :func:`commit_offsets`."""
    with patient_client(coordinator) as client:
        ((topic,),) = (found.topics for found in client.offset_fetch([GroupToFetch(group)]).groups)
    return topic.partitions[0].committed_offset
