"""The probe: ten requests a second, sent whether earlier ones are answered or not, which measures gaps exactly."""

import time
from concurrent.futures import Future
from typing import Any

from streaming.client import CoordinatorClient, CoordinatorError
from streaming.drills.clients.members import LiveClient
from streaming.drills.clients.offsets import Ledger, commit, committed, fetch, lost
from streaming.drills.recording import ProbeRequest, Recording

REQUESTS_PER_SECOND = 10
FETCH_EVERY = 5
"""Every fifth request reads what the others have committed."""

ANSWER_LIMIT_MS = 600_000
"""Longer than any drill: a request that waits for the coordinator is slow, and no error."""


class Probe(LiveClient):
    """Commits ascending offsets for one partition of its group, and reads them, until :meth:`stop`.

    A read that answers less than was acknowledged before it was sent is recorded as a lost commit.
    """

    def __init__(self, client: CoordinatorClient, recording: Recording, ledger: Ledger, group: str) -> None:
        """``client`` must wait for :data:`ANSWER_LIMIT_MS`."""
        super().__init__("probe", group, recording, ledger)
        self._client = client

    def run(self) -> None:
        number, due = 0, time.monotonic()
        while not self._stopping.wait(max(0.0, due - time.monotonic())):
            due += 1 / REQUESTS_PER_SECOND
            number += 1
            request = self._recording.sent()
            try:
                if number % FETCH_EVERY:
                    self._commit(request, number)
                else:
                    self._fetch(request)
            except CoordinatorError as failure:
                self._recording.answered(request, str(failure))

    def _commit(self, request: ProbeRequest, offset: int) -> None:
        def on_answer(answered: Future[Any]) -> None:
            self._recording.answered(request, self._ledger.outcome((self.group, 0), offset, answered))

        commit(self._client, self.group, {0: offset}).add_done_callback(on_answer)

    def _fetch(self, request: ProbeRequest) -> None:
        acknowledged = {place: at for place, at in self._ledger.acknowledged().items() if place[0] == self.group}

        def on_answer(answered: Future[Any]) -> None:
            try:
                missing = lost(acknowledged, committed(answered.result()))
            except CoordinatorError as failure:
                self._recording.answered(request, str(failure))
                return
            for each in missing:
                self._recording.notice("probe", "lost", each)
            self._recording.answered(request)

        fetch(self._client, self.group).add_done_callback(on_answer)
