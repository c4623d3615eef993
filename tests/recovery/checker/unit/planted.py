"""Faults that are planted in the history of a correct run: what a broken coordinator would have answered."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, permutations
from math import inf
from random import Random
from typing import Any, TypeVar

import msgspec

from coordinator_logic.errors import Error
from coordinator_logic.group import Group
from coordinator_logic.records import entry_decoder
from tests.recovery.checker.history import Event, Function, Kind, Position, Run
from tests.recovery.checker.operations import NS_PER_MS, Operation, Rule, Violation, grouped, paired

Plant = Callable[[Run, Random], Run | None]
"""Plants a fault; returns None if the run has no occasion for it."""

ItemT = TypeVar("ItemT")


def assert_found(
    plant: Plant, rules: set[Rule], runs: Sequence[Run], judge: Callable[[Run], Sequence[Violation]]
) -> None:
    """Plant a fault in each run that has an occasion for it, at least half of them, and see that it violates rules."""
    occasions = 0
    for seed, run in enumerate(runs):
        faulty = plant(run, Random(seed))
        if faulty is not None:
            occasions += 1
            found = {violation.rule for violation in judge(faulty)}
            assert rules <= found, f"run {seed}: only {found}"
    assert occasions >= len(runs) / 2, "the runs have too few occasions for this fault"


def one_of(chance: Random, items: Sequence[ItemT]) -> ItemT | None:
    """One of the items; None if there are none."""
    return chance.choice(items) if items else None


def answered(run: Run, f: Function) -> list[Operation]:
    """The operations of a kind that took effect."""
    return [operation for operation in paired(run.events)[0] if operation.f is f and operation.is_ok]


def changed(run: Run, operation: Operation, **fields: Any) -> Run:
    """The run with other fields in the operation's answer."""
    events = list(run.events)
    assert operation.end is not None
    events[operation.end_line - 1] = msgspec.structs.replace(operation.end, **fields)
    return run._replace(events=events)


def lost_commit(run: Run, chance: Random) -> Run | None:
    """An acknowledged commit is gone: whoever reads it later reads the offset from before it."""
    acknowledged = {
        position: event.time
        for event in reversed(run.events)
        if event.kind is Kind.OK and event.f is Function.COMMIT
        for position in event.value
    }
    reads = [
        (fetch, position)
        for fetch in answered(run, Function.FETCH)
        for position in fetch.positions
        if acknowledged.get(position, inf) < fetch.called
    ]
    chosen = one_of(chance, reads)
    if chosen is None:
        return None
    fetch, lost = chosen
    value = [Position(p.topic, p.partition) if p == lost else p for p in fetch.positions]
    return changed(run, fetch, value=value)


def invented_offset(run: Run, chance: Random) -> Run | None:
    """A client reads an offset that nobody committed."""
    fetch = one_of(chance, answered(run, Function.FETCH))
    if fetch is None:
        return None
    first, *others = fetch.positions
    return changed(run, fetch, value=[msgspec.structs.replace(first, offset=999_999), *others])


def _pairs_of_syncs(run: Run) -> Iterator[tuple[Operation, Operation]]:
    """The SyncGroups of two members in one generation."""
    for of_generation in grouped(answered(run, Function.SYNC), lambda o: o.answer.generation).values():
        yield from ((a, b) for a, b in permutations(of_generation, 2) if a.member != b.member)


def swapped_assignments(run: Run, chance: Random) -> Run | None:
    """Two members of a generation get each other's assignment."""
    pairs = [(one, other) for one, other in _pairs_of_syncs(run) if one.answer.value != other.answer.value]
    chosen = one_of(chance, pairs)
    if chosen is None:
        return None
    one, other = chosen
    return changed(changed(run, one, value=other.answer.value), other, value=one.answer.value)


def second_owner(run: Run, chance: Random) -> Run | None:
    """A member gets a partition besides its own that another member of the generation has."""
    pairs = [(one, other) for one, other in _pairs_of_syncs(run) if other.answer.value]
    chosen = one_of(chance, pairs)
    if chosen is None:
        return None
    one, other = chosen
    return changed(run, one, value=[*one.answer.value, other.answer.value[0]])


def forked_generation(run: Run, chance: Random) -> Run | None:
    """A member is told that the generation has another leader."""
    joins = answered(run, Function.JOIN)
    generations = [operation.answer.generation for operation in joins]
    join = one_of(chance, [o for o in joins if generations.count(o.answer.generation) > 1])
    return None if join is None else changed(run, join, leader="somebody else")


def generation_that_goes_back(run: Run, chance: Random) -> Run | None:
    """A heartbeat is accepted in a generation that has ended."""
    late = [o for o in answered(run, Function.HEARTBEAT) if _ended_before(run, o)]
    heartbeat = one_of(chance, late)
    return None if heartbeat is None else changed(run, heartbeat, generation=heartbeat.answer.generation - 1)


def _ended_before(run: Run, heartbeat: Operation) -> bool:
    generation = heartbeat.answer.generation
    began = (e.time for e in run.events if e.kind is Kind.OK and e.f is Function.JOIN and e.generation == generation)
    return generation > 1 and any(time < heartbeat.called for time in began)


def expelled_member(run: Run, chance: Random) -> Run | None:
    """A dynamic member with an assignment is told that it is unknown between two heartbeats that kept its session."""
    synced = {(o.member, o.answer.generation) for o in answered(run, Function.SYNC)}
    heartbeats = [o for o in answered(run, Function.HEARTBEAT) if o.call.instance is None]
    left = {event.member for event in run.events if event.f is Function.LEAVE}
    live = [
        later
        for earlier, later in pairwise(heartbeats)
        if (earlier.member, earlier.answer.generation) == (later.member, later.answer.generation)
        and (later.member, later.answer.generation) in synced
        and later.appended - earlier.called < 3_000 * NS_PER_MS
        and later.member not in left
    ]
    heartbeat = one_of(chance, live)
    if heartbeat is None:
        return None
    return changed(run, heartbeat, kind=Kind.FAIL, error=Error.UNKNOWN_MEMBER_ID)


def changed_answer(run: Run, chance: Random) -> Run | None:
    """An answer comes a second time, with other bytes."""
    answer = one_of(chance, [event for event in run.events if event.answer])
    if answer is None:
        return None
    last = run.events[-1]
    note: dict[str, Any] = {
        "process": 1 + max(event.process for event in run.events),
        "f": Function.ANSWER,
        "wall": last.wall,
        "client": "reader",
        "group": answer.group,
        "correlation_id": answer.correlation_id,
        "answer": "0" * 64,
    }
    again = [Event(kind=kind, time=last.time + 1, **note) for kind in (Kind.INVOKE, Kind.OK)]
    return run._replace(events=[*run.events, *again])


def hole_in_the_journal(run: Run, chance: Random) -> Run | None:
    """An entry of the journal is missing."""
    missing = one_of(chance, run.journal[:-1])
    return run._replace(journal=[value for value in run.journal if value != missing])


def forked_journal(run: Run, chance: Random) -> Run | None:
    """An entry of the journal comes a second time, with another time."""
    value = one_of(chance, run.journal)
    if value is None:
        return None
    entry = entry_decoder().decode(value)
    other = msgspec.json.encode(msgspec.structs.replace(entry, timestamp=entry.timestamp + 1))
    return run._replace(journal=[*run.journal, other])


def _with_generation(group: Group, generation: int) -> Group:
    return msgspec.structs.replace(group, part=msgspec.structs.replace(group.part, generation=generation))


def other_state(run: Run, chance: Random) -> Run | None:
    """The state at the end has another generation than the journal."""
    states = {
        group: None if state is None else _with_generation(state, state.generation + 1)
        for group, state in run.states.items()
    }
    return None if None in states.values() else run._replace(states=states)


def unrecorded_commit(run: Run, chance: Random) -> Run | None:
    """A commit that was refused is acknowledged."""
    refused = [o for o in paired(run.events)[0] if o.f is Function.COMMIT and o.kind is Kind.FAIL]
    commit = one_of(chance, refused)
    return None if commit is None else changed(run, commit, kind=Kind.OK, error=0)


def endless_rebalance(run: Run, chance: Random) -> Run | None:
    """From some moment on, every SyncGroup of a client is answered REBALANCE_IN_PROGRESS."""
    latest = run.events[-1].time - 30_000 * NS_PER_MS
    syncs = [sync for sync in answered(run, Function.SYNC) if sync.returned < latest and lives_on(run, sync)]
    # A client that joins for the first time disturbs the others, which then may take as long again.
    is_quiet = not any(e.f is Function.JOIN and not e.member and e.time > latest for e in run.events)
    begin = one_of(chance, syncs) if is_quiet else None
    if begin is None:
        return None
    for sync in answered(run, Function.SYNC):
        if sync.called >= begin.called:
            run = changed(run, sync, kind=Kind.FAIL, error=Error.REBALANCE_IN_PROGRESS, value=[])
    return run


def lives_on(run: Run, operation: Operation) -> bool:
    """Whether the operation's client is not stopped until the end of the run."""
    end = run.events[-1].time - 3_000 * NS_PER_MS
    own = [event for event in run.events if event.client == operation.call.client]
    return own[-1].time > end and not any(event.f is Function.STOPPED for event in own)
