"""However often a publisher is killed, and in whatever order it reads, each rebalance is published once."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import reduce

from hypothesis import event, given
from hypothesis import strategies as st

from coordinator_logic.records import JournalEntry
from streaming.explain.publishing.outbox import LONGEST_WAIT_SECONDS, MOST_TOGETHER, Outbox, sent
from streaming.explain.publishing.publication import first_positions
from streaming.explain.publishing.records import PublishedRebalance
from streaming.job.group_batch.starts import later
from streaming.journal.reader import JournalPlace
from tests.explain.story.test_of_all_groups import rebalanced_group, told_of_all
from tests.logic.driver import Driven
from tests.logic.strategies import STORIES, Move, Story
from tests.support.properties import examples

Placed = tuple[JournalEntry, JournalPlace]


class Killed(Exception):
    """The publisher's process ends."""


class Topic:
    """The topic of rebalances, and a publisher that is killed before one of its transactions."""

    def __init__(self) -> None:
        self.transactions: list[Sequence[PublishedRebalance]] = []
        self.lives_for = 0

    @property
    def records(self) -> list[PublishedRebalance]:
        """All records."""
        return [record for transaction in self.transactions for record in transaction]

    @property
    def positions(self) -> dict[int, int] | None:
        """The positions in the newest records."""
        return reduce(later, (one.journal_positions for one in self.transactions[-1])) if self.transactions else None

    def publish(self, records: Sequence[PublishedRebalance]) -> None:
        """Publish records, or be killed."""
        if self.lives_for == 0:
            raise Killed
        self.lives_for -= 1
        self.transactions.append(records)

    def run(self, entries: Sequence[Placed | None], lives_for: int) -> None:
        """Run a publisher over the journal from its beginning, for so many transactions."""
        self.lives_for = lives_for
        positions = first_positions(self.positions, {0: 10_000, 1: 10_000}, begins_now=False)
        try:
            for _ in sending(entries, Outbox(positions), self.publish):
                pass
        except Killed:
            pass


def sending(
    entries: Sequence[Placed | None],
    outbox: Outbox,
    publish: Callable[[Sequence[PublishedRebalance]], object],
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[PublishedRebalance]:
    """:func:`sent` for entries with their places."""
    place = JournalPlace(0, -1)

    def coming() -> Iterator[JournalEntry | None]:
        nonlocal place
        for placed in entries:
            if placed is not None:
                place = placed[1]
            yield None if placed is None else placed[0]

    return sent(coming(), lambda: place, outbox, publish, clock)


def in_partition(number: int, journal: Sequence[JournalEntry]) -> list[Placed]:
    """The journal's entries, in one of its partitions."""
    return [(entry, JournalPlace(number, offset)) for offset, entry in enumerate(journal)]


def interleaved(parts: Sequence[list[Placed]], order: Sequence[int]) -> list[Placed | None]:
    """The entries of partitions in this order; after each, none has come for a moment."""
    left = [list(part) for part in parts]
    taken: list[Placed | None] = []
    for number in [*order, *(number for number, part in enumerate(parts) for _ in part)]:
        if left[number]:
            taken += [left[number].pop(0), None]
    return taken


def identities(records: Sequence[PublishedRebalance]) -> list[tuple[str, str, int]]:
    """What makes each record different from all others."""
    return [(record.group_id, record.incarnation, record.sequence) for record in records]


def journal_of(group_id: str, moves: list[Move]) -> list[JournalEntry]:
    """The journal of a group after these moves."""
    driven = Driven(group_id=group_id)
    story = Story(driven)
    for move in moves:
        story.play(move)
    return driven.journal


ORDERS = st.lists(st.lists(st.integers(0, 1), max_size=60), min_size=1, max_size=4)


@given(STORIES, STORIES, ORDERS, st.integers(0, 3))
@examples(40)
def test_each_rebalance_is_published_once(
    moves: list[Move], others: list[Move], orders: list[list[int]], lives_for: int
) -> None:
    journals = [journal_of("a", moves), journal_of("b", others)]
    parts = [in_partition(number, journal) for number, journal in enumerate(journals)]
    topic = Topic()
    for order in orders:
        topic.run(interleaved(parts, order), lives_for)
    topic.run(interleaved(parts, []), 10_000)
    for group_id, journal in zip("ab", journals, strict=True):
        told = [one.rebalance for one in told_of_all(journal)]
        records = [record for record in topic.records if record.group_id == group_id]
        assert [(record.began, record.cause, record.shares) for record in records] == [
            (one.began, one.cause, one.shares) for one in told
        ]
    assert len(set(identities(topic.records))) == len(topic.records)
    event(f"{len(topic.transactions)} transactions")


def test_a_later_start_has_the_story_before_its_position() -> None:
    journal = in_partition(0, rebalanced_group("a").journal)
    topic = Topic()
    topic.run(interleaved([journal], []), 1)
    topic.run(interleaved([journal], []), 10)
    first, second = topic.records
    assert (first.generation, second.generation) == (1, 2)
    assert second.went[0].name == "client-1 at /127.0.0.1"


def test_a_first_start_begins_now_unless_it_is_to_begin_earlier() -> None:
    ends = {0: 5, 1: 7}
    assert first_positions(None, ends, begins_now=True) == ends
    assert first_positions(None, ends, begins_now=False) == {}
    assert first_positions({0: 3}, ends, begins_now=True) == {0: 3}
    assert first_positions({}, ends, begins_now=True) == {}


def test_positions_of_a_journal_that_was_deleted_do_not_count() -> None:
    assert first_positions({0: 6, 1: 7}, {0: 5, 1: 7}, begins_now=True) == {1: 7}


def rebalances(count: int) -> list[Placed | None]:
    """Entries of groups of which each has a rebalance, without a pause."""
    entries: list[Placed | None] = []
    for number in range(count):
        driven = Driven(group_id=f"group-{number}")
        driven.stable_group(1)
        entries += [(entry, JournalPlace(0, len(entries) + place)) for place, entry in enumerate(driven.journal)]
    return entries


def test_rebalances_share_a_transaction_while_entries_keep_coming() -> None:
    topic = Topic()
    topic.lives_for = 10
    list(sending(rebalances(3), Outbox({}), topic.publish, clock=lambda: 0.0))
    assert [len(transaction) for transaction in topic.transactions] == [3]
    assert MOST_TOGETHER > 3


def test_a_rebalance_waits_for_others_for_a_limited_time() -> None:
    topic, times = Topic(), iter(range(10_000))
    topic.lives_for = 100
    list(sending(rebalances(3), Outbox({}), topic.publish, clock=lambda: next(times) * LONGEST_WAIT_SECONDS))
    assert [len(transaction) for transaction in topic.transactions] == [1, 1, 1]
