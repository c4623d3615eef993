"""A thread in the background of a member."""

import threading


class MemberThread(threading.Thread):
    """A daemon thread that waits for changes of its member's state, and ends when ``_closed`` is set.

    changed: the lock of the state, which is notified of every change.
    """

    def __init__(self, name: str, changed: threading.Condition) -> None:
        super().__init__(name=name, daemon=True)
        self._changed = changed
        self._closed = False

    def close(self) -> None:
        """End the thread and wait for its end."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self.is_alive():
            self.join()
