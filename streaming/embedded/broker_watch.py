"""Ends what runs on an embedded broker when the broker ends by itself."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from streaming.contract.errors import CannotRun
from streaming.embedded.broker import EmbeddedBroker
from streaming.embedded.stop_signals import CHILD_ENDED

LOOK_SECONDS = 0.25


class _BrokerEnded(BaseException):
    """Raised in the main thread, wherever it waits. No handler of errors catches it."""


@contextmanager
def ending_with_broker(
    broker: EmbeddedBroker, report: Callable[[str], object] = lambda _line: None, *, keeps_log: bool = True
) -> Iterator[None]:
    """Run the block while a broker runs; it is interrupted when the broker ends although nobody has stopped it.

    Use it on the main thread: on another one, the block is not interrupted.

    report: called with a line when the block is interrupted. keeps_log: whether the broker's log outlives the program.

    Raises:
        CannotRun: the broker has ended. This error takes the place of any other one that follows from it.
    """
    try:
        if threading.current_thread() is threading.main_thread():
            with _interrupted(broker, report):
                yield
        else:
            yield
    except _BrokerEnded:
        pass
    except Exception:
        if broker.failure is None:
            raise
    if failure := broker.failure:
        log = f"; its log: {broker.log_file}" if keeps_log else ""
        raise CannotRun(f"the Kafka broker has ended: {failure}{log}")


@contextmanager
def _interrupted(broker: EmbeddedBroker, report: Callable[[str], object]) -> Iterator[None]:
    """Raise _BrokerEnded in the block when the broker ends by itself."""
    interruption, has_ended = _Interruption(), threading.Event()
    watch = threading.Thread(target=_watch, args=(broker, has_ended, report), name="broker-watch", daemon=True)
    former = signal.signal(CHILD_ENDED, interruption.handle)
    watch.start()
    try:
        yield
    finally:
        interruption.is_open = False
        has_ended.set()
        watch.join()
        signal.signal(CHILD_ENDED, former)


class _Interruption:
    """Raises once, as long as it is open."""

    def __init__(self) -> None:
        self.is_open = True

    def handle(self, _number: int, _frame: object) -> None:
        """Handle the signal."""
        if self.is_open:
            self.is_open = False
            raise _BrokerEnded


def _watch(broker: EmbeddedBroker, has_ended: threading.Event, report: Callable[[str], object]) -> None:
    while not has_ended.wait(LOOK_SECONDS):
        if broker.failure is not None:
            report("stopping: the Kafka broker has ended")
            main = threading.main_thread().ident
            assert main is not None
            # Sent to the thread: what it waits in is interrupted, which a signal to the process does not do.
            signal.pthread_kill(main, CHILD_ENDED)
            return
