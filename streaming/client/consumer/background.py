"""Runs a job on a thread of its own."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def in_background(name: str, job: Callable[[], T]) -> Future[T]:
    """Run a job on a daemon thread, which does not delay the end of the process."""
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(job())
        except BaseException as failure:
            result.set_exception(failure)

    threading.Thread(target=run, name=name, daemon=True).start()
    return result
