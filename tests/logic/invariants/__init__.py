"""Everything that must hold after every step, whatever has happened: one function for each invariant.

The driver checks them after each step of each test, the exhaustive search on each of its transitions.
"""

from tests.logic.invariants.checked_step import Step
from tests.logic.invariants.checks import check_step
from tests.logic.invariants.of_journals import check_journal

__all__ = ["Step", "check_journal", "check_step"]
