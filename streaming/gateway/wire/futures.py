"""Futures that nobody may await, or that other threads complete."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

log = logging.getLogger(__name__)


def retrieve_failure(done: "asyncio.Future[Any]") -> None:
    """Retrieve the failure of a future, so that asyncio does not log it; a callback."""
    if not done.cancelled():
        done.exception()


def complete(waiter: "asyncio.Future[None]") -> None:
    """Complete a future, unless who awaited it has given up."""
    if not waiter.done():
        waiter.set_result(None)


def call_from_thread(loop: asyncio.AbstractEventLoop, callback: Callable[..., None], *arguments: Any) -> None:
    """Call on the event loop from another thread; not at all if the loop is closed."""
    try:
        loop.call_soon_threadsafe(callback, *arguments)
    except RuntimeError:
        log.debug("the event loop is closed")
