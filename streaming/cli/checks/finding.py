"""The result of one check."""

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "note", "risk", "problem"]


@dataclass(frozen=True)
class Finding:
    """What a check found, and what to do about it.

    A ``note`` needs no action: the check does not apply, or could not be made from here.
    With a ``risk`` the job runs, and may fail or lose requests when something else fails.
    """

    check: str
    status: Status
    detail: str
    advice: str = ""


def ok(check: str, detail: str) -> Finding:
    """A check that passed."""
    return Finding(check, "ok", detail)


def note(check: str, detail: str, advice: str = "") -> Finding:
    """A check that does not apply or could not be made, and how to make it."""
    return Finding(check, "note", detail, advice)


def risk(check: str, detail: str, advice: str) -> Finding:
    """A check that passed for now, what may go wrong, and what to do."""
    return Finding(check, "risk", detail, advice)


def problem(check: str, detail: str, advice: str) -> Finding:
    """A check that failed, and what to do."""
    return Finding(check, "problem", detail, advice)
