"""Partitions in words."""

from collections.abc import Iterator, Mapping, Sequence


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
