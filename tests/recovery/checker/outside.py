"""Histories for other checkers: Jepsen's operations as EDN, and the calls and returns of porcupine as JSON.

**Jepsen.** :func:`to_edn` writes one map a line, with ``:index``, ``:time``, ``:type``, ``:process``, ``:f`` and
``:value``, as ``jepsen.history/history`` takes them from a ``history.edn``; our other fields follow under their names.
A fault is an ``:info`` of ``:nemesis``. :func:`register_to_edn` writes the reads and writes of one partition, as
Knossos' register takes them.

**Porcupine.** :func:`to_porcupine` writes a list that Go's ``encoding/json`` decodes as ``[]porcupine.Event``: ``Kind``
is false for a call and true for a return. Porcupine wants a return for every call. What has failed is therefore left
out, and what may still take effect returns at the end.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import edn_format
import msgspec

from coordinator_logic.messages import NO_OFFSET
from tests.recovery.checker.history import Event, Function, Key, Kind, Position
from tests.recovery.checker.offsets import WRITES
from tests.recovery.checker.operations import Operation, paired

_JEPSENS = ("process", "kind", "f", "time", "value")
_OUR_FIELDS = tuple(name for name in Event.__struct_fields__ if name not in _JEPSENS)
_DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(Event)}

NEMESIS = edn_format.Keyword("nemesis")


def _keyword(name: str) -> Any:
    return edn_format.Keyword(name.replace("_", "-"))


def _edn(operation: dict[str, Any]) -> str:
    return str(edn_format.dumps({_keyword(name): value for name, value in operation.items()}))


# ---- Jepsen ----------------------------------------------------------------------------------------------------


def to_edn(history: Sequence[Event]) -> Iterator[str]:
    """Yield a line of EDN for each event."""
    for index, event in enumerate(history):
        is_fault = event.f is Function.FAULT
        ours = {name: getattr(event, name) for name in _OUR_FIELDS if getattr(event, name) != _DEFAULTS[name]}
        yield _edn(
            {
                "index": index,
                "time": event.time,
                "type": _keyword(Kind.INFO if is_fault else event.kind),
                "process": NEMESIS if is_fault else event.process,
                "f": _keyword(event.f),
                "value": [list(msgspec.structs.astuple(position)) for position in event.value] or None,
                **ours,
                # To read a fault back.
                **({"phase": _keyword(event.kind), "strand": event.process} if is_fault else {}),
            }
        )


def from_edn(lines: Iterable[str]) -> Iterator[Event]:
    """Read the lines of :func:`to_edn`."""
    for line in lines:
        fields = {keyword.name.replace("-", "_"): value for keyword, value in edn_format.loads(line).items()}
        del fields["index"]
        kind, process = fields.pop("type"), fields.pop("process")
        fields["kind"] = Kind(fields.pop("phase", kind).name)
        fields["process"] = fields.pop("strand", process)
        fields["f"] = Function(fields["f"].name)
        fields["value"] = [Position(*position) for position in fields["value"] or ()]
        yield Event(**fields)


def register_to_edn(history: Sequence[Event], group: str, key: Key) -> Iterator[str]:
    """Yield the reads and writes of a partition's offset for Knossos; the value is a pair of offset and metadata."""
    accesses = _accesses(history, group, key)
    events = [(event, line, access) for access in accesses for event, line in _events_of(access)]
    for index, (event, _, access) in enumerate(sorted(events, key=lambda entry: entry[1])):
        is_write = access.f in WRITES
        value = _value(access.call if is_write else event, key) if is_write or event.kind is Kind.OK else None
        yield _edn(
            {
                "index": index,
                "time": event.time,
                "type": _keyword(event.kind),
                "process": event.process,
                "f": _keyword("write" if is_write else "read"),
                "value": value,
            }
        )


def _events_of(operation: Operation) -> Iterator[tuple[Event, int]]:
    yield operation.call, operation.line
    if operation.end is not None:
        yield operation.end, operation.end_line


def _accesses(history: Sequence[Event], group: str, key: Key) -> list[Operation]:
    functions = (*WRITES, Function.FETCH)
    return [
        operation
        for operation in paired(history)[0]
        if operation.call.group == group and operation.f in functions and key in {p.key for p in operation.call.value}
    ]


def _value(event: Event, key: Key) -> list[Any]:
    position = next((position for position in event.value if position.key == key), Position(*key))
    return [position.offset, position.metadata]


# ---- porcupine -------------------------------------------------------------------------------------------------


def to_porcupine(history: Sequence[Event], group: str, key: Key) -> bytes:
    """The reads and writes of a partition's offset as JSON.

    The value of a call is ``{"op": "write", "value": [offset, metadata]}``, or ``{"op": "read"}``; that of a read's
    return is the pair that was read. Reads without an answer are left out.
    """
    placed: list[tuple[float, int, dict[str, Any]]] = []
    for number, access in enumerate(_accesses(history, group, key)):
        is_write = access.f in WRITES
        if access.kind is Kind.FAIL or not (is_write or access.is_ok):
            continue
        call = {"op": "write", "value": _value(access.call, key)} if is_write else {"op": "read"}
        output = None if is_write else _value(access.answer, key)
        process = access.call.process
        placed.append((access.line, 0, {"ClientId": process, "Kind": False, "Value": call, "Id": number}))
        end = access.end_line if access.is_ok else float("inf")
        placed.append((end, number, {"ClientId": process, "Kind": True, "Value": output, "Id": number}))
    return msgspec.json.encode([event for _, _, event in sorted(placed, key=lambda entry: entry[:2])])


def initial_value() -> list[Any]:
    """The value of a register before the first write."""
    return [NO_OFFSET, ""]
