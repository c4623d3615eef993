"""Completes transactions for their groups: the step of EndTxn and InitProducerId that clients wait for."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable

from coordinator_logic.apis import WRITE_TXN_MARKERS
from coordinator_logic.messages import TxnMarker, WriteTxnMarkersRequest
from streaming.client.errors import CoordinatorError
from streaming.gateway.groups.channel import GroupChannel, RequestEvent
from streaming.gateway.transactions.participation import Participation, TransactionPhase
from streaming.gateway.transactions.participation_log import ParticipationLog, ParticipationLogUnavailable
from streaming.gateway.wire.client_request import Caller
from streaming.gateway.wire.futures import retrieve_failure

log = logging.getLogger(__name__)


class CompletionFailed(Exception):
    """The outcome is not in the log of every group; completing must be retried."""


class TransactionCompleter:
    """Delivers transactions' outcomes to groups. Repeating a delivery, from any gateway, does no harm.

    ``marker_seconds`` is how long the response of a group is expected.
    """

    def __init__(self, channel: GroupChannel, participation_log: ParticipationLog, marker_seconds: float) -> None:
        self._channel = channel
        self._participation_log = participation_log
        self._marker_seconds = marker_seconds

    async def complete(self, participations: Iterable[Participation], committed: bool, caller: Caller) -> None:
        """Append the outcome to the log of every group, then erase the participations.

        Requests that reach the groups after this returns are answered with the outcome applied. Raises
        :class:`CompletionFailed`.
        """
        completed = list(participations)
        phase = TransactionPhase.ending(committed)
        try:
            # A concurrent TxnOffsetCommit must see in the participation that the outcome may precede its offsets.
            await self._participation_log.write(
                each.with_phase(phase) for each in completed if each.phase is TransactionPhase.ONGOING
            )
            await asyncio.gather(*(event.wait_appended() for event in self._send(completed, committed, caller)))
            await self._participation_log.erase(completed)
        except (CoordinatorError, ParticipationLogUnavailable) as failure:
            raise CompletionFailed(str(failure)) from failure

    def _send(self, participations: list[Participation], committed: bool, caller: Caller) -> list[RequestEvent]:
        markers_by_group = defaultdict(list)
        for participation in participations:
            marker = TxnMarker(participation.id, participation.producer_epoch, committed)
            markers_by_group[participation.group_id].append(marker)
        name, version = WRITE_TXN_MARKERS.name, WRITE_TXN_MARKERS.max_version
        events = []
        for group_id, markers in markers_by_group.items():
            body = WriteTxnMarkersRequest(markers)
            event = self._channel.send(group_id, name, version, body, caller, self._marker_seconds)
            # An appended event is carried out without a response too.
            event.response.add_done_callback(retrieve_failure)
            events.append(event)
        return events


def log_outcome(participation: Participation, committed: bool, reason: str) -> None:
    """Log an outcome that did not follow from the producer's EndTxn."""
    log.info(
        "transaction of %r for group %r: %s, %s",
        participation.transactional_id,
        participation.group_id,
        "committed" if committed else "aborted",
        reason,
    )
