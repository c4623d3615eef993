"""Recovery: completes transactions whose gateway was killed, or that the broker aborted at their timeout."""

import asyncio
import logging
import time
from collections.abc import Collection
from dataclasses import dataclass, field

from streaming.gateway.transactions.completion import CompletionFailed, TransactionCompleter, log_outcome
from streaming.gateway.transactions.coordinators import CoordinatorsUnreachable, TransactionCoordinators
from streaming.gateway.transactions.participation import Participation, is_expired, outcome
from streaming.gateway.transactions.participation_log import ParticipationLog, ParticipationLogUnavailable
from streaming.gateway.transactions.timeouts import TransactionTimeouts
from streaming.gateway.wire.client_request import Caller

log = logging.getLogger(__name__)


@dataclass
class TransactionRecovery:
    """Asks the brokers for the outcome of transactions whose participations remain, and completes them.

    ``caller`` is the gateway itself, for the request events.
    """

    participation_log: ParticipationLog
    completer: TransactionCompleter
    coordinators: TransactionCoordinators
    caller: Caller
    timeouts: TransactionTimeouts
    _first_seen: dict[Participation, float] = field(default_factory=dict, init=False)

    async def run(self) -> None:
        """Recover in intervals until cancelled."""
        last_failure = ""
        while True:
            try:
                await self._recover()
                last_failure = ""
            except (CoordinatorsUnreachable, ParticipationLogUnavailable, CompletionFailed) as failure:
                if str(failure) != last_failure:
                    last_failure = str(failure)
                    log.warning("some transactions cannot be completed yet: %s", last_failure)
            except Exception:
                # If this task ended, offsets would stay pending until the gateway restarts.
                log.exception("completing transactions")
            await asyncio.sleep(self.timeouts.recovery_interval_seconds)

    async def _recover(self) -> None:
        remaining = self._remaining()
        if not remaining:
            return
        descriptions = await self.coordinators.describe({each.transactional_id for each in remaining})
        # Read after the brokers' responses, so that no intended outcome is missed: see docs/transactions.md.
        for participation in await self.participation_log.read():
            if participation.transactional_id not in descriptions:
                continue
            description = descriptions[participation.transactional_id]
            committed = outcome(participation, description)
            if committed is None and is_expired(participation, description, round(time.time() * 1000)):
                committed = False
            if committed is not None:
                log_outcome(participation, committed, "according to the broker")
                await self.completer.complete([participation], committed, self.caller)

    def _remaining(self) -> Collection[Participation]:
        """The participations that this gateway has seen, unchanged, for longer than the recovery delay."""
        now = time.monotonic()
        self._first_seen = {each: self._first_seen.get(each, now) for each in self.participation_log.cached()}
        delay = self.timeouts.recovery_delay_seconds
        return [each for each, seen in self._first_seen.items() if now - seen >= delay]
