"""What a fault is."""

from collections.abc import Callable
from enum import StrEnum
from random import Random
from typing import NamedTuple

from tests.recovery.chaos.needs import Need
from tests.recovery.chaos.stage import Stage


class Target(StrEnum):
    """What a fault breaks. Faults of one target follow each other; those of several overlap."""

    JOB = "job"
    BROKER = "broker"
    GATEWAY = "gateway"


Inject = Callable[[Stage, Random], str]
"""Breaks and repairs something; returns what it did. Raises NotInjected."""


class NotInjected(Exception):
    """The fault could not be injected here; the message says why."""


class NotPossibleHere(NotInjected):
    """This machine lacks what the fault needs."""


class Fault(NamedTuple):
    """A fault. Those with ``is_alone`` mix with no others. With ``spares_clients``, members live on through the run.

    ends: parts of the last lines with which a job may end because of it. Any other end is a failure of the run: a
    supervisor would hide it, and clients would wait for a start.
    """

    name: str
    target: Target
    inject: Inject
    needs: frozenset[Need] = frozenset()
    is_alone: bool = False
    spares_clients: bool = False
    ends: tuple[str, ...] = ()
