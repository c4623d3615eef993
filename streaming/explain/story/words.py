"""A story in words: a line for the summary, then each rebalance with its cause."""

from collections.abc import Iterator
from datetime import UTC, datetime

from streaming.explain.story.model import Cause, Moves, Rebalance, Story

SHOWN_MEMBERS = 5


def lines_of(story: Story) -> Iterator[str]:
    """The story, from its summary to the present state."""
    yield _summary(story)
    if not story.is_complete:
        yield f"The journal begins at {clock(story.first)}: what the group was before is not known."
    if story.epochs:
        yield "It is, or was, a consumer group (KIP-848): only its time as a classic group is told here."
    for rebalance in story.rebalances:
        yield ""
        yield from rebalance_lines(rebalance)
    yield ""
    yield f"Now: {story.state} since {clock(story.state_since)}, {len(story.members)} member(s)"
    if story.members:
        yield f"  {_some(story.members)}"


def rebalance_lines(rebalance: Rebalance) -> Iterator[str]:
    """A rebalance: when, why, how long, who came and went, what moved."""
    generation = f" -> generation {rebalance.generation}" if rebalance.generation is not None else ""
    yield f"{clock(rebalance.began)}  {rebalance.cause.trigger}{generation}"
    for place, cause in enumerate(rebalance.causes):
        yield f"  {'or perhaps' if place else 'because'}: {_cause(cause)}"
    yield f"  {_phases(rebalance)}"
    if rebalance.came:
        yield f"  came: {_some([one.name for one in rebalance.came])}"
    for one in rebalance.went:
        yield f"  went: {one.name} ({one.reason})"
    if rebalance.moves is not None:
        yield f"  {_moves(rebalance.moves)}"


def clock(time: int) -> str:
    """A time in UTC, to the millisecond."""
    return datetime.fromtimestamp(time / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _summary(story: Story) -> str:
    summary = story.summary
    parts = [
        f"{summary.rebalances} rebalance(s) from {clock(story.first)} to {clock(story.last)}",
        f"{summary.rebalances_an_hour:.1f} an hour",
        f"not Stable {summary.not_stable_share:.1%} of the time",
        f"flapping {summary.flapping:.0%}",
    ]
    if summary.busiest is not None:
        parts.append(f"most caused by {summary.busiest} ({summary.busiest_count})")
    return f"{story.group_id}: {', '.join(parts)}"


def _cause(cause: Cause) -> str:
    first, last = cause.evidence[0].sequence, cause.evidence[-1].sequence
    entries = f"entry {first}" if first == last else f"entries {first} to {last}"
    certainty = "certain" if cause.is_certain else "possible"
    who = f"{cause.member}: " if cause.member else ""
    return f"{who}{cause.text} [{certainty}; {entries} of the journal]"


def _phases(rebalance: Rebalance) -> str:
    if rebalance.joined is None:
        return "waits for its members to join"
    joining = f"joining took {(rebalance.joined - rebalance.began) / 1000:.1f} s"
    if rebalance.was_empty:
        joining += " with the initial delay"
    if rebalance.ended is None:
        return f"{joining}, waits for the leader's assignment"
    syncing = f"the assignment {(rebalance.ended - rebalance.joined) / 1000:.1f} s"
    return f"{joining}, {syncing}{', interrupted by the next rebalance' if rebalance.is_interrupted else ''}"


def _moves(moves: Moves) -> str:
    needless = f", {moves.needless} of them without need" if moves.needless else ""
    return f"{moves.moved} of {moves.partitions} partitions moved{needless}"


def _some(names: list[str]) -> str:
    more = len(names) - SHOWN_MEMBERS
    return ", ".join(names[:SHOWN_MEMBERS]) + (f" and {more} more" if more > 0 else "")
