"""Futures that nobody may await."""

import asyncio
from typing import Any


def retrieve_failure(done: "asyncio.Future[Any]") -> None:
    """Retrieve the failure of a future, so that asyncio does not log it; a callback."""
    if not done.cancelled():
        done.exception()
