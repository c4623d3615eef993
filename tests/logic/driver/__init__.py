"""A group that a test drives by hand: a fake clock, one request a step, every invariant checked after every step.

A :class:`Driven` group is stepped as in production: from its snapshot, with the requests of a batch and the batch's
time. Each step runs twice and must return the same bytes. Time passes only when a test says so.
"""

from tests.logic.driver.answers import (
    Answer,
    Joined,
    assignment_of,
    delete_errors,
    errors_of,
    joined,
    leave_errors,
    listing,
    reading,
)
from tests.logic.driver.driven import Driven
from tests.logic.driver.stepped_group import DELAY_MS, GROUP_ID, NEW_MEMBER_MS, REBALANCE_MS, SESSION_MS

__all__ = [
    "DELAY_MS",
    "GROUP_ID",
    "NEW_MEMBER_MS",
    "REBALANCE_MS",
    "SESSION_MS",
    "Answer",
    "Driven",
    "Joined",
    "assignment_of",
    "delete_errors",
    "errors_of",
    "joined",
    "leave_errors",
    "listing",
    "reading",
]
