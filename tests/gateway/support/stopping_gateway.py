"""A gateway that halts in the middle of a request until a test kills it.

``python -m tests.gateway.support.stopping_gateway <options of the command>``. A request halts at one of the points
below if its transactional id begins with the point's name.
"""

import asyncio
import sys
from typing import Any, NoReturn

from kio.schema.add_offsets_to_txn.v0.request import AddOffsetsToTxnRequest
from kio.schema.end_txn.v0.request import EndTxnRequest

from streaming.cli.main import main
from streaming.gateway.transactions import serving
from streaming.gateway.transactions.handlers import TransactionHandlers
from streaming.gateway.transactions.participation import Participation
from streaming.gateway.transactions.recovery import TransactionRecovery
from streaming.gateway.wire.client_request import Caller

BROKER_HAS_GROUP = "broker-has-group"
"""AddOffsetsToTxn: the broker has added the group; the participation is not written."""
INTENDED = "intended"
"""EndTxn: the intended outcome is written; the broker has not received the request."""
ENDED = "ended"
"""EndTxn: the broker has ended the transaction; the outcome is not delivered to the group."""
DELIVERED = "delivered"
"""EndTxn: the outcome is delivered; the client has no response."""


class StoppingHandlers(TransactionHandlers):
    """The handlers, which can halt between any two steps."""

    async def forward(self, payload: Any) -> Any:
        if payload.__api_key__ == EndTxnRequest.__api_key__ and payload.transactional_id.startswith(INTENDED):
            await _stop(payload.transactional_id)
        answer = await super().forward(payload)
        if payload.__api_key__ == AddOffsetsToTxnRequest.__api_key__ and payload.transactional_id.startswith(
            BROKER_HAS_GROUP
        ):
            await _stop(payload.transactional_id)
        return answer

    async def complete(self, participations: list[Participation], committed: bool, caller: Caller) -> None:
        transactional_id = participations[0].transactional_id
        if transactional_id.startswith(ENDED):
            await _stop(transactional_id)
        await super().complete(participations, committed, caller)
        if transactional_id.startswith(DELIVERED):
            await _stop(transactional_id)


class IdleRecovery(TransactionRecovery):
    """Recovers nothing, so that a test can inspect what a killed gateway leaves."""

    async def run(self) -> None:
        await asyncio.Event().wait()


async def _stop(transactional_id: str) -> NoReturn:
    sys.stdout.write(f"stopped {transactional_id}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()
    raise AssertionError("the event is never set")


if __name__ == "__main__":
    # The classes are no parameters of the gateway: only this test replaces them.
    for name, replacement in (("TransactionHandlers", StoppingHandlers), ("TransactionRecovery", IdleRecovery)):
        setattr(serving, name, replacement)
    main()
