"""The check of a run against all rules."""

from collections.abc import Iterator, Mapping, Sequence

from coordinator_logic.group import Group
from tests.recovery.checker.answers import check_answers
from tests.recovery.checker.consumer_groups.sessions import check_sessions_of_reconciling
from tests.recovery.checker.generations import check_generations
from tests.recovery.checker.history import Event
from tests.recovery.checker.journal import check_journal, told
from tests.recovery.checker.offsets import check_offsets
from tests.recovery.checker.operations import Operation, Violation, paired
from tests.recovery.checker.ownership import check_ownership
from tests.recovery.checker.sessions import check_sessions, outages_in
from tests.recovery.checker.settling import check_settling

STABLE_WITHIN_MS = 60_000
"""How long after the last disturbance the members may take to be assigned again: longer than the sessions and the
rebalance timeouts of a run, and than a restart of the job."""


def check(
    history: Sequence[Event],
    journal: Sequence[bytes] = (),
    final_state: Mapping[str, Group | None] | None = None,
    *,
    stable_within_ms: int = STABLE_WITHIN_MS,
) -> list[Violation]:
    """Return what is wrong with a run; an empty list if nothing is.

    history: the events in the order of their file. journal: the values of ``group-journal`` in the order of the log,
    with repetitions; without any, the rules about the journal are left out. final_state: by group id, the group at the
    end of the run, None if it does not exist.
    """
    operations, malformed = paired(history)
    # The other rules cannot judge what did not happen in this way.
    return malformed or list(_violations(operations, journal, final_state or {}, stable_within_ms))


def _violations(
    operations: Sequence[Operation],
    journal: Sequence[bytes],
    states: Mapping[str, Group | None],
    stable_within_ms: int,
) -> Iterator[Violation]:
    story, broken = told(journal)
    yield from broken
    yield from check_answers(operations)
    yield from check_offsets(operations, states, story.incarnations)
    yield from check_generations(operations, story.incarnations, story.replaced)
    yield from check_ownership(operations, story.incarnations, story.consumers)
    outages = outages_in(operations)
    yield from check_sessions(operations, story.consumers, outages)
    yield from check_sessions_of_reconciling(operations, story.consumers, outages, has_journal=bool(journal))
    yield from check_settling(operations, states, stable_within_ms)
    if journal:
        yield from check_journal(story, operations, states)
