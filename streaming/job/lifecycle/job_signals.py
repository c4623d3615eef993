"""SIGTERM and SIGINT for the job: stop at once while it starts, after the batch in flight while it runs."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from streaming.embedded.interruption import raises_only_once, take_time_to_stop
from streaming.embedded.stop_signals import STOP_SIGNALS, StopRequest, restored_handlers


class StopSignals:
    """Handles the signals in one of two phases.

    Until :meth:`let_batches_finish` is called, and after a second signal, a signal raises KeyboardInterrupt, once.
    Further signals do not disturb the clean-up. In between, a signal sets ``requested``.
    """

    def __init__(self) -> None:
        self.requested = StopRequest()
        self._is_running = False
        self._has_raised = False

    def install(self) -> None:
        """Handle the signals. Call it again after a session has started: pyspark then handles SIGINT itself."""
        if threading.current_thread() is threading.main_thread():
            for number in STOP_SIGNALS:
                signal.signal(number, self._handle)

    def let_batches_finish(self) -> None:
        """From now on, the first signal requests a stop instead of raising."""
        self._is_running = True
        take_time_to_stop()
        self.install()

    def _handle(self, _number: int, _frame: object) -> None:
        if self._is_running and not self.requested.is_set():
            self.requested.set()
        elif not self._has_raised:
            self._has_raised = True
            raises_only_once()
            raise KeyboardInterrupt


@contextmanager
def stop_signals() -> Iterator[StopSignals]:
    """Handle the signals within the block, and suppress the KeyboardInterrupt that they raise."""
    signals = StopSignals()
    with restored_handlers():
        signals.install()
        with suppress(KeyboardInterrupt):
            yield signals
