"""What the topics no longer have: requests that were deleted before the job has read them."""

from collections.abc import Iterator, Mapping

from confluent_kafka.admin import AdminClient, OffsetSpec

from streaming.job.topics.inspection import list_offsets

MEANING = (
    "their senders got no answer, and have retried or given up; every member keeps its membership, with a full session "
    "from now"
)


def lost_requests(admin: AdminClient, topic: str, read: Mapping[int, int]) -> list[str]:
    """A line for each way in which the log no longer fits the job's offsets; raises KafkaException.

    ``read`` is the offset after the last request that the job has read, by partition.
    """
    if not read:
        return []
    first = _offsets(admin, topic, read, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
    end = _offsets(admin, topic, read, OffsetSpec.latest())  # type: ignore[no-untyped-call]
    unread = {partition: (offset, first[partition]) for partition, offset in read.items() if offset < first[partition]}
    vanished = {partition: (end[partition], offset) for partition, offset in read.items() if end[partition] < offset}
    lines = []
    if unread:
        what = f"{topic} has lost {_count(unread)} requests that the job had not read, to retention or a deletion"
        lines.append(f"{what} ({', '.join(_ranges(unread))}): {MEANING}")
    if vanished:
        what = f"{topic} no longer holds the last {_count(vanished)} requests that the job has read"
        meaning = "an unclean election or a restored disk has cut the log; the groups keep what these requests changed"
        lines.append(f"{what} ({', '.join(_ranges(vanished))}): {meaning}")
    return lines


def has_records(admin: AdminClient, topic: str, partitions: int) -> bool:
    """Whether a topic with so many partitions has records that retention has left. Raises KafkaException."""
    every = dict.fromkeys(range(partitions), 0)
    first = _offsets(admin, topic, every, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
    return first != _offsets(admin, topic, every, OffsetSpec.latest())  # type: ignore[no-untyped-call]


def _offsets(admin: AdminClient, topic: str, partitions: Mapping[int, int], spec: OffsetSpec) -> dict[int, int]:
    return {partition: found.offset for partition, found in list_offsets(admin, topic, partitions, spec).items()}


def _count(ranges: Mapping[int, tuple[int, int]]) -> int:
    return sum(end - start for start, end in ranges.values())


def _ranges(ranges: Mapping[int, tuple[int, int]]) -> Iterator[str]:
    for partition, (start, end) in sorted(ranges.items()):
        yield f"partition {partition}: offsets {start} to {end - 1}"
