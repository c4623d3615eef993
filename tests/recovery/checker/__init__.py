"""The offline checker of histories: what clients sent and saw while a run broke things, judged afterwards.

A run records its clients' operations with a :class:`~tests.recovery.checker.history.Recorder`, and adds the journal and
the final snapshots. ``python -m tests.recovery.checker FILE`` says what is wrong. Each rule has a module; `outside.py`
converts histories for other checkers. Imports the logic and, of the tests, the invariants of journals; needs no broker.
"""

from tests.recovery.checker.checks import check
from tests.recovery.checker.history import Event, Function, Kind, Position, Recorder, Run, read
from tests.recovery.checker.operations import Rule, Violation

__all__ = ["Event", "Function", "Kind", "Position", "Recorder", "Rule", "Run", "Violation", "check", "read"]
