"""``group-coordinator`` that loses its first wake events: ``python -m tests.job.wake_events.forgetful_job run ...``.

They never reach the brokers, and nothing says so, as when a broker loses what it has acknowledged.
"""

from collections.abc import Callable
from itertools import count
from typing import Any
from unittest.mock import patch

from streaming.cli import main as cli
from streaming.job.wake_events.producer import WakeEvents

LOST = 4
"""The one of the start, and three more."""

_produce: Callable[[WakeEvents, Any], None] = WakeEvents._produce
_produced = count()


def produce(self: WakeEvents, on_delivery: Any) -> None:
    """Append a wake event as :meth:`WakeEvents._produce` does, unless it is one of the first."""
    if next(_produced) >= LOST:
        _produce(self, on_delivery)


if __name__ == "__main__":
    with patch.object(WakeEvents, "_produce", produce):
        cli.main()
