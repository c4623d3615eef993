"""A gateway that stands still for ever in the middle of a request: where it does is for a test to say, and to kill it.

``python -m tests.streaming.gateway.stopping_gateway <options as for the command>``. A transactional id that begins with
the name of one of the points below stops there.
"""

import asyncio
import sys
from typing import Any, NoReturn

from streaming.cli import main
from streaming.gateway.request import Caller
from streaming.gateway.transactions import serving
from streaming.gateway.transactions.apis import ADD_OFFSETS_TO_TXN, END_TXN, TransactionApis
from streaming.gateway.transactions.participation import Participation
from streaming.gateway.transactions.settlement import Settler

BROKER_HAS_GROUP = "broker-has-group"
"""AddOffsetsToTxn: the broker has taken the group into the transaction, and nobody else knows."""
INTENDED = "intended"
"""EndTxn: the intention is written, the broker knows nothing of it."""
ENDED = "ended"
"""EndTxn: the broker has ended the transaction, and the group does not know."""
TOLD = "told"
"""EndTxn: the group knows, the client was not answered."""


class StoppingApis(TransactionApis):
    """The handlers, with a stop between any two steps."""

    async def ask_broker(self, payload: Any) -> Any:
        if payload.__api_key__ == END_TXN and payload.transactional_id.startswith(INTENDED):
            await _stop(payload.transactional_id)
        answer = await super().ask_broker(payload)
        if payload.__api_key__ == ADD_OFFSETS_TO_TXN and payload.transactional_id.startswith(BROKER_HAS_GROUP):
            await _stop(payload.transactional_id)
        return answer

    async def settle(self, participations: list[Participation], committed: bool, caller: Caller) -> None:
        transactional_id = participations[0].transactional_id
        if transactional_id.startswith(ENDED):
            await _stop(transactional_id)
        await super().settle(participations, committed, caller)
        if transactional_id.startswith(TOLD):
            await _stop(transactional_id)


class IdleSettler(Settler):
    """Settles nothing, however long a test looks at what was left."""

    async def run(self) -> None:
        await asyncio.Event().wait()


async def _stop(transactional_id: str) -> NoReturn:
    sys.stdout.write(f"stopped {transactional_id}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()
    raise AssertionError("nobody sets the event")


if __name__ == "__main__":
    # They are no part of what the module offers.
    for name, replacement in (("TransactionApis", StoppingApis), ("Settler", IdleSettler)):
        setattr(serving, name, replacement)
    main()
