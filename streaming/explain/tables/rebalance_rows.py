"""The rows of the table ``rebalances``: the story of each group, from the values of its journal's records."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from streaming.explain.story.model import Rebalance
from streaming.explain.story.telling import StoryTeller
from streaming.explain.time_travel.row_types import TableRow
from streaming.explain.time_travel.rows import utc
from streaming.journal.entries import readable, story_entry
from streaming.journal.fold import GroupFold
from streaming.journal.histories import last_history


class RebalanceRow(TableRow, frozen=True):
    """A rebalance that has ended, with its most probable cause.

    ``generation`` is the generation, in a consumer group the epoch, to which it led; null if none began. ``joined`` is
    when it began, in a consumer group when its target was computed; ``joining_ms`` is the time until then, and
    ``assigning_ms`` the time from then to ``ended``. ``is_certain`` is false if the ``other_triggers`` fit, too.
    ``member_id`` is the member that caused it, ``client`` its client id and host. ``came`` and ``went`` are member ids.
    ``moved_needlessly`` counts the moved partitions that a balanced assignment would have left where they were.
    ``incarnation`` and ``sequence`` are those of the journal entry with which it began. What the journal does not know
    is null.
    """

    group_id: str
    group_type: str
    generation: int | None
    trigger: str
    is_certain: bool
    other_triggers: list[str]
    member_id: str | None
    client: str | None
    reason: str
    began: datetime
    joined: datetime | None
    ended: datetime
    joining_ms: int | None
    assigning_ms: int | None
    is_interrupted: bool
    members_before: int | None
    members_after: int | None
    came: list[str]
    went: list[str]
    partitions: int | None
    moved: int | None
    moved_needlessly: int | None
    incarnation: str
    sequence: int


def rebalance_rows(group_id: str, values: Iterable[bytes | None], time: int | None = None) -> Iterator[RebalanceRow]:
    """The rows of a group, from the values of its journal's records, in their order.

    Of two histories, the one of the newer coordinator holds. Those that ended later than ``time`` (ms since the epoch)
    are left out.
    """
    teller = StoryTeller(group_id)
    fold = GroupFold(teller)
    for entry in last_history(readable(values, story_entry, group_id)):
        fold.add(entry)
    for rebalance in teller.rebalances:
        if rebalance.ended is not None and (time is None or rebalance.ended <= time):
            yield _row(teller, group_id, rebalance, rebalance.ended)


def _row(teller: StoryTeller, group_id: str, rebalance: Rebalance, ended: int) -> RebalanceRow:
    cause, began, joined, moves = rebalance.cause, rebalance.began, rebalance.joined, rebalance.moves
    return RebalanceRow(
        group_id=group_id,
        group_type=rebalance.group_type,
        generation=rebalance.generation,
        trigger=cause.trigger.value,
        is_certain=cause.is_certain,
        other_triggers=[other.trigger.value for other in rebalance.causes[1:]],
        member_id=cause.member,
        client=None if cause.member is None else teller.client_of(cause.member),
        reason=cause.text,
        began=utc(began),
        joined=None if joined is None else utc(joined),
        ended=utc(ended),
        joining_ms=None if joined is None else joined - began,
        assigning_ms=None if joined is None else ended - joined,
        is_interrupted=rebalance.is_interrupted,
        members_before=rebalance.members_before,
        members_after=rebalance.members_after,
        came=[change.member for change in rebalance.came],
        went=[change.member for change in rebalance.went],
        partitions=None if moves is None else moves.partitions,
        moved=None if moves is None else moves.moved,
        moved_needlessly=None if moves is None else moves.needless,
        incarnation=cause.evidence[-1].incarnation,
        sequence=cause.evidence[-1].sequence,
    )
