"""Tells groups how transactions have ended: the step that clients wait for, and the settler that makes up for it."""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Collection, Iterable

from coordinator_logic.messages import ResponseEnvelope, TxnMarker, WriteTxnMarkersRequest
from streaming.client.errors import CoordinatorError
from streaming.gateway.channel import GroupChannel, SentEvent
from streaming.gateway.request import Caller
from streaming.gateway.transactions.coordinators import CoordinatorsUnreachable, TransactionCoordinators
from streaming.gateway.transactions.ledger import Ledger, LedgerUnavailable
from streaming.gateway.transactions.participation import Participation, Phase, is_forgotten, outcome

__all__ = ["Settlement", "Settler", "Unsettled"]

log = logging.getLogger(__name__)

EVENT_TIMEOUT_SECONDS = 10.0
"""Not for how long anybody waits: the event is given up earlier by the producer when no broker takes it."""

INTERVAL_SECONDS = 1.0
LEFT_OVER_SECONDS = 3.0
"""How long a line has to be there before somebody asks the broker about it. Most transactions are over by then."""


class Unsettled(Exception):
    """Not all groups could be told; it may and has to be tried again."""


class Settlement:
    """Tells groups. Everything here may be done twice, and by several gateways."""

    def __init__(self, channel: GroupChannel, ledger: Ledger) -> None:
        self._channel = channel
        self._ledger = ledger

    async def settle(self, participations: Iterable[Participation], committed: bool, caller: Caller) -> None:
        """Append the outcome to the log of every group, and erase the lines. Raises :class:`Unsettled`.

        When this returns, whatever is asked of the groups from now on is answered with the outcome known.
        """
        settled = list(participations)
        ending = Phase.ending(committed)
        try:
            # Who has just sent offsets must see from the line that the end may have come before them.
            await self._ledger.write(line.in_phase(ending) for line in settled if line.phase is Phase.ONGOING)
            await asyncio.gather(*(sent.wait_appended() for sent in self._send(settled, committed, caller)))
            await self._ledger.erase(settled)
        except (CoordinatorError, LedgerUnavailable) as failure:
            raise Unsettled(str(failure)) from failure

    def _send(self, participations: list[Participation], committed: bool, caller: Caller) -> list[SentEvent]:
        by_group = defaultdict(list)
        for participation in participations:
            by_group[participation.group_id].append(
                TxnMarker(participation.id, participation.producer_epoch, committed)
            )
        sent = []
        for group_id, markers in by_group.items():
            body = WriteTxnMarkersRequest(markers)
            event = self._channel.send(group_id, "WriteTxnMarkers", 1, body, caller, EVENT_TIMEOUT_SECONDS)
            event.answer.add_done_callback(_ignore)
            sent.append(event)
        return sent


class Settler:
    """Settles what is left over, again and again, until it is cancelled."""

    def __init__(
        self, ledger: Ledger, settlement: Settlement, coordinators: TransactionCoordinators, caller: Caller
    ) -> None:
        self._ledger = ledger
        self._settlement = settlement
        self._coordinators = coordinators
        self._caller = caller
        self._seen_since: dict[Participation, float] = {}

    async def run(self) -> None:
        """Never returns."""
        told = ""
        while True:
            try:
                await self._settle_left_over()
                told = ""
            except (CoordinatorsUnreachable, LedgerUnavailable, Unsettled) as failure:
                if str(failure) != told:
                    told = str(failure)
                    log.warning("transactions are left open for now: %s", told)
            except Exception:
                # Without this task, what is left over would stay pending for ever.
                log.exception("settling transactions")
            await asyncio.sleep(INTERVAL_SECONDS)

    async def _settle_left_over(self) -> None:
        left_over = self._left_over()
        if not left_over:
            return
        standing = await self._coordinators.describe({line.transactional_id for line in left_over})
        # Read after the broker has answered: see the package's description.
        for line in await self._ledger.read():
            if line.transactional_id not in standing:
                continue
            described = standing[line.transactional_id]
            committed = outcome(line, described)
            if committed is None and is_forgotten(line, described, round(time.time() * 1000)):
                committed = False
            if committed is not None:
                log_outcome(line, committed, "found out by asking the broker")
                await self._settlement.settle([line], committed, self._caller)

    def _left_over(self) -> Collection[Participation]:
        now = time.monotonic()
        self._seen_since = {line: self._seen_since.get(line, now) for line in self._ledger.seen()}
        return [line for line, since in self._seen_since.items() if now - since >= LEFT_OVER_SECONDS]


def log_outcome(line: Participation, committed: bool, why: str) -> None:
    """Tell the operator of an end that the producer was not told by EndTxn."""
    end = "committed" if committed else "aborted"
    log.info("transaction of %r for group %r: %s, %s", line.transactional_id, line.group_id, end, why)


def _ignore(answer: "asyncio.Future[ResponseEnvelope]") -> None:
    """The event is carried out, answered or not."""
    if not answer.cancelled():
        answer.exception()
