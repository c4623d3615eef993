"""Drops the responses of a job in whose place another one is active, by the epochs that responses name.

A response proves no epoch: whoever may write to the topic can name any. So a response that names another epoch than the
ones before is a reason to look at the announcements (:mod:`.announced_epoch`), and only what they say is believed.
Responses that name the same epoch, which is nearly all, cost a comparison.
"""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from coordinator_logic.messages import ResponseEnvelope

log = logging.getLogger(__name__)

PAUSE_SECONDS = 1.0
"""After a look, the next one begins no sooner: false epochs must not keep a client looking."""

HOLD_SECONDS = 3.0
"""A look that takes longer counts as failed: responses wait for it."""

MAX_HELD = 10_000
"""So many responses wait for the end of a look; further ones are delivered."""


class EpochFence:
    """The fence of one client. Call it on one thread; ``announced`` is called on threads of the fence.

    announced: returns the epoch of the newest announcement, 0 without one; may raise any exception.
    """

    def __init__(self, announced: Callable[[], int]) -> None:
        self.outdated = 0
        """How many responses were dropped."""
        self.false_epochs = 0
        """How many looks have found that a response named an epoch which no job has announced."""
        self._announced = announced
        self._epoch = 0
        """That of the newest job: as announced, or before the first look that of the first response."""
        self._is_announced = False
        self._claimed = 0
        """The highest epoch that a response has named since the look began."""
        self._look: Future[int] | None = None
        self._look_began = self._next_look = 0.0
        self._held: list[ResponseEnvelope] = []
        self._warned_epoch = 0
        self._has_warned = False

    def admits(self, response: ResponseEnvelope) -> bool:
        """Whether to deliver a response now; one that is held comes back from :meth:`released`."""
        epoch = response.job_epoch
        # A job of an earlier release has no epoch.
        if (epoch == self._epoch and self._look is None) or not epoch:
            return True
        if not self._epoch:
            self._epoch = epoch
            return True
        if epoch != self._epoch:
            self._begin_look()
        if self._look is None:
            return not self._is_outdated(epoch)
        self._claimed = max(self._claimed, epoch, self._epoch)
        if epoch >= self._claimed or len(self._held) >= MAX_HELD:
            return True
        self._held.append(response)
        return False

    def released(self) -> list[ResponseEnvelope]:
        """The held responses that are to be delivered now. Call it often."""
        look = self._look
        if look is None or not (look.done() or time.monotonic() - self._look_began > HOLD_SECONDS):
            return []
        held, self._held, self._look = self._held, [], None
        claimed, self._claimed = self._claimed, 0
        self._next_look = time.monotonic() + PAUSE_SECONDS
        self._learn(look, claimed)
        return [response for response in held if not self._is_outdated(response.job_epoch)]

    def _begin_look(self) -> None:
        if self._look is not None or time.monotonic() < self._next_look:
            return
        look, self._look_began = Future[int](), time.monotonic()
        self._look = look

        def run() -> None:
            try:
                look.set_result(self._announced())
            except Exception as failure:
                look.set_exception(failure)

        threading.Thread(target=run, name="announced-epoch", daemon=True).start()

    def _learn(self, look: Future[int], claimed: int) -> None:
        failure = look.exception() if look.done() else "the brokers are too slow"
        if failure is not None:
            self._warn(f"the epoch of the active job cannot be checked, and responses of all epochs count: {failure}")
            return
        announced = look.result()
        if not announced:
            # Jobs of earlier releases announce nothing.
            return
        self._epoch, self._is_announced = announced, True
        if claimed > announced:
            self.false_epochs += 1
            self._warn(f"a response names the epoch {claimed}, but the active job has announced {announced}")

    def _is_outdated(self, epoch: int) -> bool:
        """Whether a response with this epoch is to be dropped; counts it."""
        if not self._is_announced or epoch >= self._epoch:
            return False
        self.outdated += 1
        if epoch != self._warned_epoch:
            self._warned_epoch = epoch
            log.warning(
                "ignoring the answers of a job with the epoch %d, because one with the epoch %d is active",
                epoch,
                self._epoch,
            )
        return True

    def _warn(self, line: str) -> None:
        """Log a line, once for each client: whoever causes it can do so every second."""
        if not self._has_warned:
            self._has_warned = True
            log.warning("%s", line)
