"""The committed offsets: each partition of each group is a register that clients write and read."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from coordinator_logic.group import Group
from coordinator_logic.messages import NO_GENERATION, NO_OFFSET
from tests.recovery.checker.generations import SEVERAL_LIVES, Incarnations
from tests.recovery.checker.history import Function, Key, Kind, Position
from tests.recovery.checker.operations import Operation, Rule, Violation, grouped, lines_of, reconciling_groups
from tests.recovery.checker.registers import Access, Conflict, Value, conflict_in, initial

NOTHING: Value = (NO_OFFSET, "")

WRITES = (Function.COMMIT, Function.RESET)


@dataclass(slots=True)
class _Register:
    """What happened to a partition's offset. ``refused`` are the commits that the coordinator did not accept."""

    accesses: list[Access] = field(default_factory=lambda: [initial(NOTHING)])
    refused: dict[Value, Operation] = field(default_factory=dict)


def check_offsets(
    operations: Sequence[Operation], states: Mapping[str, Group | None], incarnations: Incarnations
) -> Iterator[Violation]:
    """Check what clients read, and what the groups hold at the end of the run."""
    measure = _Generations(operations, incarnations)
    for (group, key), register in _registers(operations, states).items():
        yield from _check(group, key, register, measure)


def _registers(operations: Sequence[Operation], states: Mapping[str, Group | None]) -> dict[tuple[str, Key], _Register]:
    registers: dict[tuple[str, Key], _Register] = {}
    for operation in operations:
        if operation.f in WRITES:
            _add_writes(registers, operation)
        elif operation.f is Function.FETCH and operation.is_ok:
            for position in operation.answer.value:
                register = registers.setdefault((operation.call.group, position.key), _Register())
                register.accesses.append(_access(operation, position, is_write=False))
    end = max((o.returned if o.returned < inf else o.called for o in operations), default=0) + 1
    for (group, (topic, partition)), register in registers.items():
        if group in states:
            stored = states[group]
            committed = None if stored is None else stored.offsets.get(topic, {}).get(partition)
            value = NOTHING if committed is None else (committed.offset, committed.metadata)
            register.accesses.append(Access(value, end, end, is_write=False))
    return registers


def _add_writes(registers: dict[tuple[str, Key], _Register], operation: Operation) -> None:
    """Add a commit's or a reset's writes. An answer may name the accepted positions only; the others were refused."""
    accepted = {position.key for position in operation.positions} if operation.kind is not Kind.FAIL else set()
    for position in operation.call.value:
        register = registers.setdefault((operation.call.group, position.key), _Register())
        if position.key in accepted:
            register.accesses.append(_access(operation, position, is_write=True))
        else:
            register.refused[position.offset, position.metadata] = operation


def _access(operation: Operation, position: Position, *, is_write: bool) -> Access:
    value = (position.offset, position.metadata)
    return Access(value, operation.called, operation.returned, is_write, operation)


def _check(group: str, key: Key, register: _Register, measure: "_Generations") -> Iterator[Violation]:
    topic, partition = key
    name = f"{topic}-{partition}"
    written = {access.value for access in register.accesses if access.is_write}
    unwritten = [a for a in register.accesses if not a.is_write and a.value not in written]
    for access in unwritten:
        refused = register.refused.get(access.value)
        why = "nobody committed it" if refused is None else f"its commit was refused with {refused.error.name}"
        yield Violation(
            Rule.READS_WHAT_WAS_COMMITTED,
            group,
            f"{name}: {_reader(access)} {_shown(access.value)}, but {why}",
            lines_of(access.operation, refused),
        )
    accesses = [access for access in register.accesses if access not in unwritten]
    conflict = conflict_in(accesses)
    if conflict is not None:
        yield _not_linearizable(group, name, conflict)
    yield from _check_order(group, name, accesses, measure)


def _reader(access: Access) -> str:
    return "the state at the end holds" if access.operation is None else "a client read"


def _shown(value: Value) -> str:
    return "no offset" if value == NOTHING else f"offset {value[0]}"


def _not_linearizable(group: str, name: str, conflict: Conflict) -> Violation:
    values = " and ".join(dict.fromkeys(_shown(access.value) for access in conflict.accesses))
    lines = lines_of(*(access.operation for access in conflict.accesses))
    return Violation(Rule.LINEARIZABLE_OFFSETS, group, f"{name}: {values}: {conflict.what}", lines)


# ---- the order of what is read ---------------------------------------------------------------------------------


class _Generations:
    """In which generation a member committed, and in which life of its group.

    A member of a consumer group may commit in an epoch before its own, so the newest one counts in which it has
    committed.
    """

    def __init__(self, operations: Sequence[Operation], incarnations: Incarnations) -> None:
        self._incarnations = incarnations
        self._newest: dict[Operation, int] = {}
        reconciling = reconciling_groups(operations)
        accepted: dict[tuple[str, str], int] = {}
        for operation in operations:
            if operation.f is Function.COMMIT and operation.call.group in reconciling:
                member = operation.call.group, operation.call.member
                newest = max(accepted.get(member, NO_GENERATION), operation.call.generation)
                self._newest[operation] = newest
                if operation.is_ok:
                    accepted[member] = newest

    def of(self, write: Access) -> int:
        """The generation of a write; -1 without a member."""
        operation = write.operation
        return NO_GENERATION if operation is None else self._newest.get(operation, operation.call.generation)

    def life(self, write: Access) -> str:
        """The life of the group."""
        return "" if write.operation is None else self._incarnations.get(write.operation.call.member, "")


def _check_order(group: str, name: str, accesses: Sequence[Access], measure: _Generations) -> Iterator[Violation]:
    reads = [access for access in accesses if not access.is_write]
    seen = {read.value for read in reads}
    resets = [
        access
        for access in accesses
        if access.is_write
        and access.operation is not None
        and access.operation.f is Function.RESET
        # One of unknown outcome that nobody read explains nothing: clients go on from what they have read.
        and (access.returned < inf or access.value in seen)
    ]
    writes = grouped((access for access in accesses if access.is_write), lambda access: access.value)
    # Of a value that was committed several times, nobody knows which commit was read.
    written = {value: same[0] for value, same in writes.items() if len(same) == 1}
    generations = {value: measure.of(write) for value, write in written.items()}
    if (pair := _step_back(reads, resets, lambda read: read.value[0])) is not None:
        what = f"{name}: {_shown(pair[1].value)} was read after {_shown(pair[0].value)}, without a reset"
        yield Violation(Rule.OFFSETS_GO_AHEAD, group, what, lines_of(pair[0].operation, pair[1].operation))
    of_members = [read for read in reads if generations.get(read.value, NO_GENERATION) != NO_GENERATION]
    for life, of_life in grouped(of_members, lambda read: measure.life(written[read.value])).items():
        pair = _step_back(of_life, resets, lambda read: generations[read.value])
        if pair is None or life == SEVERAL_LIVES:
            continue
        old, new = (f"generation {generations[access.value]}" for access in reversed(pair))
        what = f"{name}: {_shown(pair[1].value)} of {old} was read after {_shown(pair[0].value)} of {new}"
        yield Violation(Rule.FENCED_COMMITS, group, what, lines_of(pair[0].operation, pair[1].operation))


def _step_back(
    reads: Sequence[Access], resets: Sequence[Access], measure: Callable[[Access], int]
) -> tuple[Access, Access] | None:
    """The first read with a smaller measure than one that ended before it began; reads around a reset do not count."""
    by_return = sorted(reads, key=lambda access: access.returned)
    # By the moment (ns) before which a reset may explain a difference.
    by_reset = grouped(
        sorted(reads, key=lambda access: access.called),
        lambda read: max((reset.returned for reset in resets if reset.called <= read.returned), default=-inf),
    )
    for since, later in by_reset.items():
        earlier = (read for read in by_return if read.called > since)
        following = next(earlier, None)
        largest: Access | None = None
        for read in later:
            while following is not None and following.returned < read.called:
                if largest is None or measure(following) > measure(largest):
                    largest = following
                following = next(earlier, None)
            if largest is not None and measure(read) < measure(largest):
                return largest, read
    return None
