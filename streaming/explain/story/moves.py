"""Which partitions changed their owner, how many had to, and partitions in words."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache

from coordinator_logic.embedded_protocols import ConsumerProtocolError, TopicPartition, decode_assignment
from streaming.explain.story.model import Moves, Partitions, Share

ASSIGNMENTS_REMEMBERED = 4096
"""Most members keep their assignment in a rebalance, and to decode it takes longer than everything else."""

Owners = dict[TopicPartition, str]
"""The member that owns each partition."""


def owners_of(assignments: Mapping[str, bytes]) -> Owners | None:
    """The owners in a generation's assignments; None if one of them is not a consumer's."""
    owners: Owners = {}
    for member, assignment in assignments.items():
        try:
            owners.update(dict.fromkeys(_assigned(assignment), member))
        except ConsumerProtocolError:
            return None
    return owners


@lru_cache(ASSIGNMENTS_REMEMBERED)
def _assigned(assignment: bytes) -> Sequence[TopicPartition]:
    return tuple(decode_assignment(assignment).partitions) if assignment else ()


def moves_between(before: Owners, after: Owners, members: int) -> Moves:
    """Compare two assignments; ``members`` are those of the second, also those without a partition."""
    both = before.keys() & after.keys()
    moved = sum(before[partition] != after[partition] for partition in both)
    least = _least(before, after, members)
    return Moves(len(after), moved, least, max(0, moved - least))


def partitions_of(owners: Owners) -> dict[str, Partitions]:
    """The partitions of each member that owns one."""
    found: dict[str, Partitions] = {}
    for (topic, number), member in sorted(owners.items()):
        found.setdefault(member, {}).setdefault(topic, []).append(number)
    return found


def shares_between(before: Owners, after: Owners, name: Callable[[str], str]) -> list[Share]:
    """The members whose partitions differ between two assignments, in the order of their names."""
    moved = [one for one in before.keys() | after.keys() if before.get(one) != after.get(one)]
    changed = {owners[one] for owners in (before, after) for one in moved if one in owners}
    had, have = partitions_of(_only(before, changed)), partitions_of(_only(after, changed))
    shares = [Share(member, name(member), had.get(member, {}), have.get(member, {})) for member in changed]
    return sorted(shares, key=lambda share: (share.name, share.member))


def _only(owners: Owners, members: Set[str]) -> Owners:
    return {partition: owner for partition, owner in owners.items() if owner in members}


def renamed(owners: Owners, old: str, new: str) -> Owners:
    """The owners after a member got another id."""
    return {partition: new if owner == old else owner for partition, owner in owners.items()}


def without(owners: Owners, members: Iterable[str]) -> Owners:
    """The owners without these members."""
    gone = frozenset(members)
    return {partition: owner for partition, owner in owners.items() if owner not in gone}


def _least(before: Owners, after: Owners, members: int) -> int:
    """The fewest partitions that must move so that no member has two more than another one."""
    both = before.keys() & after.keys()
    held: dict[str, int] = {}
    staying = set(after.values())
    for partition in both:
        if before[partition] in staying:
            held[before[partition]] = held.get(before[partition], 0) + 1
    share, more = divmod(len(after), max(members, 1))
    # Those that hold most get the larger shares.
    shares = [share + (place < more) for place in range(len(held))]
    kept = sum(map(min, sorted(held.values(), reverse=True), shares))
    return len(both) - kept


def in_words(partitions: Mapping[str, Sequence[int]]) -> str:
    """Partitions by topic as ``orders 0-3,7; returns 0``; the numbers of a topic are sorted."""
    return "; ".join(f"{topic} {','.join(_ranges(numbers))}" for topic, numbers in partitions.items() if numbers)


def _ranges(numbers: Sequence[int]) -> Iterator[str]:
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1:
            yield _range(first, last)
            first = number
        last = number
    yield _range(first, last)


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"
