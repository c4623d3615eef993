"""What the topics no longer have: requests that were deleted before the job has read them."""

from collections.abc import Iterator, Mapping
from functools import partial

from confluent_kafka.admin import AdminClient, OffsetSpec

from streaming.contract.output.text import counted
from streaming.job.topics.partition_leaders import list_offsets, once_leaders_answer

MEANING = (
    "their senders got no answer, and have retried or given up; every member keeps its membership, with a full session "
    "from now"
)

FORGOTTEN = "their changes are lost although they were acknowledged, such as commits, joins and generations since then"


def lost_requests(admin: AdminClient, topic: str, read: Mapping[int, int], answered: Mapping[int, int]) -> list[str]:
    """A line for each way in which the log no longer fits the job's offsets; raises KafkaException.

    ``read`` is the offset after the last request that the checkpoint has read, ``answered`` that after the last one
    that an earlier job has answered, as far as it was announced; both by partition.
    """
    if not read:
        return []
    first = first_offsets(admin, topic, read)
    end = _offsets(admin, topic, read, OffsetSpec.latest())  # type: ignore[no-untyped-call]
    return loss_lines(topic, read, answered, first, end)


def loss_lines(
    topic: str,
    read: Mapping[int, int],
    answered: Mapping[int, int],
    first: Mapping[int, int],
    end: Mapping[int, int],
) -> list[str]:
    """The lines of :func:`lost_requests` for a topic with these first offsets and ends, by partition."""
    unread, forgotten = {}, {}
    for partition, offset in read.items():
        answered_until = min(max(answered.get(partition, 0), offset), first[partition])
        if offset < answered_until:
            forgotten[partition] = (offset, answered_until)
        unread_from = max(answered_until, offset)
        if unread_from < first[partition]:
            unread[partition] = (unread_from, first[partition])
    vanished = {partition: (end[partition], offset) for partition, offset in read.items() if end[partition] < offset}
    lines = []
    if forgotten:
        what = (
            f"{topic} has lost {requests_in(forgotten)} that the last active job had answered and this "
            "checkpoint had not read, to retention or a deletion"
        )
        lines.append(f"{what} ({', '.join(range_lines(forgotten))}): {FORGOTTEN}")
    if unread:
        what = f"{topic} has lost {requests_in(unread)} that the job had not read, to retention or a deletion"
        lines.append(f"{what} ({', '.join(range_lines(unread))}): {MEANING}")
    if vanished:
        what = f"{topic} no longer holds the last {requests_in(vanished)} that the job has read"
        meaning = "an unclean election or a restored disk has cut the log; the groups keep what these requests changed"
        lines.append(f"{what} ({', '.join(range_lines(vanished))}): {meaning}")
    return lines


def first_offsets(admin: AdminClient, topic: str, partitions: Mapping[int, int]) -> dict[int, int]:
    """The first offset that each of these partitions still has. Raises KafkaException."""
    return _offsets(admin, topic, partitions, OffsetSpec.earliest())  # type: ignore[no-untyped-call]


def end_offsets(admin: AdminClient, topic: str, partitions: int) -> dict[int, int]:
    """The offset after the last record of each of so many partitions. Raises KafkaException."""
    return _offsets(admin, topic, dict.fromkeys(range(partitions), 0), OffsetSpec.latest())  # type: ignore[no-untyped-call]


def within_log(claimed: Mapping[int, int], end: Mapping[int, int]) -> dict[int, int]:
    """What records of others claim that jobs have read, as far as the log has it: nobody has read what is not there.

    Both are offsets by partition: ``claimed`` of the first request that was not read, ``end`` after the last one.
    """
    return {partition: min(offset, end[partition]) for partition, offset in claimed.items() if partition in end}


def count_replayed(read: Mapping[int, int], replay_until: Mapping[int, int], first: Mapping[int, int]) -> int:
    """How many requests are read again, of those that the topic still has; all offsets are by partition."""
    return sum(
        max(0, end - max(read.get(partition, 0), first.get(partition, 0))) for partition, end in replay_until.items()
    )


def has_records(admin: AdminClient, topic: str, partitions: int) -> bool:
    """Whether a topic with so many partitions has records that retention has left. Raises KafkaException."""
    every = dict.fromkeys(range(partitions), 0)
    return first_offsets(admin, topic, every) != _offsets(admin, topic, every, OffsetSpec.latest())  # type: ignore[no-untyped-call]


def _offsets(admin: AdminClient, topic: str, partitions: Mapping[int, int], spec: OffsetSpec) -> dict[int, int]:
    """Offsets by partition. Waits for leaders: that of a partition created a moment ago may not know that it leads."""
    listed = once_leaders_answer(partial(list_offsets, admin, topic, partitions, spec))
    return {partition: found.offset for partition, found in listed.items()}


def requests_in(ranges: Mapping[int, tuple[int, int]]) -> str:
    """How many requests are in ranges of offsets (first, end), by partition, in words."""
    return counted(sum(end - start for start, end in ranges.values()), "request")


def range_lines(ranges: Mapping[int, tuple[int, int]]) -> Iterator[str]:
    """Describe ranges of offsets, each of at least one."""
    for partition, (start, end) in sorted(ranges.items()):
        yield f"partition {partition}: offsets {start} to {end - 1}"
