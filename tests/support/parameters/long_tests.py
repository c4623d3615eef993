"""Parameters of which ``make test`` takes some, and ``make long`` the others."""

from collections.abc import Container, Iterable
from typing import Any

import pytest


def mostly_long(values: Iterable[Any], short: Container[Any]) -> list[Any]:
    """The values of one parameter, with the mark ``long`` but for those in ``short``."""
    return [pytest.param(value, marks=() if value in short else pytest.mark.long) for value in values]
