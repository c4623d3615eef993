"""A story in words: a line for the summary, then each rebalance with its cause, and each refused request."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from coordinator_logic.messages import LAST_TIME
from coordinator_logic.states import State
from streaming.contract.output.text import counted
from streaming.explain.story.group_types import words_of
from streaming.explain.story.model import (
    Cause,
    Evidence,
    Moves,
    Now,
    Partitions,
    Rebalance,
    Refused,
    RefusedRequest,
    Story,
    Wait,
)
from streaming.explain.story.moves import in_words

EPOCH = datetime.fromtimestamp(0, UTC)

SHOWN_MEMBERS = 5
SHOWN_SHARES = 10


def lines_of(story: Story) -> Iterator[str]:
    """The story, from its summary to the present state."""
    yield _summary(story)
    if not story.is_complete:
        yield f"The journal does not reach back far enough: the group's members at {clock(story.first)} are not known."
    refused = story.refused
    if refused is not None and refused.requests:
        yield _refused_summary(refused)
    told: list[Rebalance | RefusedRequest] = [*story.rebalances, *([] if refused is None else refused.refusals)]
    for one in sorted(told, key=lambda each: each.began if isinstance(each, Rebalance) else each.first):
        yield ""
        yield from rebalance_lines(one) if isinstance(one, Rebalance) else refusal_lines(one)
    yield ""
    if refused is not None:
        yield from refused.notes
    yield from now_lines(story)


def refusal_lines(refusal: RefusedRequest) -> Iterator[str]:
    """A refusal: when, how often, whose request, and to what it lost."""
    times = "" if refusal.count == 1 else f", {refusal.count} times until {clock(refusal.last)}"
    yield f"{clock(refusal.first)}  refused {refusal.api}: {refusal.error}{times}"
    yield f"  {sender_line(refusal)}"
    entries = f"; {entries_in_words(refusal.evidence)}" if refusal.evidence else ""
    yield f"  {refusal.text} [request {refusal.partition}:{refusal.offset}{entries}]"


def sender_line(refusal: RefusedRequest) -> str:
    """Whose request was refused."""
    parts = [refusal.name]
    if refusal.member:
        parts.append(f"member {refusal.member}")
    if refusal.instance_id is not None:
        parts.append(f"instance {refusal.instance_id}")
    return ", ".join(parts)


def entries_in_words(evidence: list[Evidence]) -> str:
    """The places of entries in the journal."""
    first, last = evidence[0].sequence, evidence[-1].sequence
    return f"entry {first} of the journal" if first == last else f"entries {first} to {last} of the journal"


def _refused_summary(refused: Refused) -> str:
    busiest = "" if refused.busiest is None else f", most from {refused.busiest} ({refused.busiest_count})"
    commits = "a commit" if refused.commits == 1 else f"{refused.commits:,} commits"
    return f"Refused: {counted(refused.requests, 'request')}, among them {commits}{busiest}"


def rebalance_lines(rebalance: Rebalance) -> Iterator[str]:
    """A rebalance: when, why, how long, for whom it waited, who came and went, what moved."""
    yield headline(rebalance)
    for place, cause in enumerate(rebalance.causes):
        yield f"  {'or perhaps' if place else 'because'}: {_cause(cause)}"
    yield f"  {phases(rebalance)}"
    for wait in rebalance.waited_for[:SHOWN_MEMBERS]:
        yield f"  waited {_duration(wait)}for {wait.name} {wait.what}"
    if rebalance.came:
        yield f"  came: {_some([one.name for one in rebalance.came])}"
    for one in rebalance.went:
        yield f"  went: {one.name} ({one.reason})"
    if rebalance.moves is not None:
        yield f"  {moves_in_words(rebalance, rebalance.moves)}"
    for share in rebalance.shares[:SHOWN_SHARES]:
        yield f"    {share.name}: {in_words(share.before) or 'none'} -> {in_words(share.after) or 'none'}"
    if (more := len(rebalance.shares) - SHOWN_SHARES) > 0:
        yield f"    and {counted(more, 'more member')}"


def headline(rebalance: Rebalance) -> str:
    """A rebalance in one line: when it began, why, and to which generation or epoch it led."""
    number = words_of(rebalance.group_type).number
    reached = f" -> {number} {rebalance.generation}" if rebalance.generation is not None else ""
    return f"{clock(rebalance.began)}  {rebalance.cause.trigger}{reached}"


def clock(time: int) -> str:
    """A time (ms since the epoch) in UTC, to the millisecond; the nearest one that has a date."""
    shown = EPOCH + timedelta(milliseconds=min(max(time, 0), LAST_TIME))
    return shown.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _summary(story: Story) -> str:
    summary = story.summary
    parts = [
        f"{counted(summary.rebalances, 'rebalance')} from {clock(story.first)} to {clock(story.last)}",
        f"{summary.rebalances_an_hour:.1f} an hour",
        f"not Stable {summary.not_stable_share:.1%} of the time",
        f"flapping {summary.flapping:.0%}",
    ]
    if summary.busiest is not None:
        parts.append(f"most caused by {summary.busiest} ({summary.busiest_count})")
    return f"{story.group_id}: {', '.join(parts)}"


def _cause(cause: Cause) -> str:
    certainty = "certain" if cause.is_certain else "possible"
    return f"{_with_member(cause)} [{certainty}; {entries_in_words(cause.evidence)}]"


def _with_member(cause: Cause) -> str:
    return f"{cause.member}: {cause.text}" if cause.member else cause.text


def event_line(group_id: str, rebalance: Rebalance) -> str:
    """A rebalance that has ended, of a group, in one line."""
    time, _, what = headline(rebalance).partition("  ")
    took = ((rebalance.ended or rebalance.began) - rebalance.began) / 1000
    parts = [time, group_id, what, f"{took:.1f} s"]
    if rebalance.is_interrupted:
        parts.append("interrupted")
    if rebalance.moves is not None:
        parts.append(moves_in_words(rebalance, rebalance.moves))
    parts.append(cause_in_short(rebalance))
    return "  ".join(parts)


def cause_in_short(rebalance: Rebalance) -> str:
    """The most probable cause of a rebalance, without the journal's evidence."""
    cause = rebalance.cause
    doubt = "" if cause.is_certain else f"perhaps: {' or '.join(one.trigger for one in rebalance.causes)}; "
    return f"{doubt}{_with_member(cause)}"


def phases(rebalance: Rebalance) -> str:
    """How long the phases took, or what the rebalance waits for."""
    words = words_of(rebalance.group_type)
    (first, second), waits = words.phases, words.waits
    end = ", interrupted by the next rebalance" if rebalance.is_interrupted else ""
    if rebalance.joined is None:
        return f"{first} was not complete{end}" if rebalance.is_interrupted else f"waits for {waits[0]}"
    joining = f"{first} took {(rebalance.joined - rebalance.began) / 1000:.1f} s"
    if rebalance.was_empty:
        joining += " with the initial delay"
    if rebalance.ended is None:
        return f"{joining}, waits for {waits[1]}"
    return f"{joining}, {second} {(rebalance.ended - rebalance.joined) / 1000:.1f} s{end}"


def now_lines(story: Story) -> Iterator[str]:
    """The group after its last entry: its state, what it waits for, and who owns what."""
    now = story.now
    reached = "" if now.generation is None else f" in {words_of(story.group_type).number} {now.generation}"
    state = "state not known" if now.since is None else f"{now.state} since {clock(now.since)}"
    yield f"Now: {state}{reached}, {_members(now)}"
    is_certain = now.state != State.PREPARING_REBALANCE.value
    for wait in now.waits_for[:SHOWN_MEMBERS]:
        yield f"  {'waits' if is_certain else 'may wait'} for {wait.name} {wait.what}, since {clock(wait.since)}"
    if (more := len(now.waits_for) - SHOWN_MEMBERS) > 0:
        yield f"  {'waits' if is_certain else 'may wait'} for {counted(more, 'more member')}"
    if now.waits_for and not is_certain:
        yield "  a member that rejoins unchanged leaves no entry in the journal: it may have rejoined already"
    if now.deadline is not None:
        yield f"  goes on without them at {clock(now.deadline)}"
    for owner in now.members[:SHOWN_SHARES]:
        at = "" if owner.epoch is None else f" at epoch {owner.epoch}"
        yield f"  {owner.name}{at}: {in_words(owner.partitions) or 'no known partition'}"
    if (more := len(now.members) - SHOWN_SHARES) > 0:
        yield f"  and {counted(more, 'more member')}"


def _members(now: Now) -> str:
    if now.knows_members:
        return counted(len(now.members), "member")
    return f"at least {counted(len(now.members), 'member')}" if now.members else "members not known"


def _duration(wait: Wait) -> str:
    return "" if wait.until is None else f"{(wait.until - wait.since) / 1000:.1f} s "


def moves_in_words(rebalance: Rebalance, moves: Moves) -> str:
    """How many partitions changed their owner, came to have one, and lost theirs."""
    needless = f", {moves.needless} of them without need" if moves.needless else ""
    before, after = (_owned(one.before for one in rebalance.shares), _owned(one.after for one in rebalance.shares))
    assigned = f", {len(new)} newly assigned" if (new := after - before) else ""
    lost = f", {len(gone)} no longer assigned" if (gone := before - after) else ""
    return f"{moves.moved} of {counted(moves.partitions, 'partition')} moved{needless}{assigned}{lost}"


def _owned(shares: Iterable[Partitions]) -> set[tuple[str, int]]:
    return {(topic, number) for share in shares for topic, numbers in share.items() for number in numbers}


def _some(names: list[str]) -> str:
    more = len(names) - SHOWN_MEMBERS
    return ", ".join(names[:SHOWN_MEMBERS]) + (f" and {more} more" if more > 0 else "")
