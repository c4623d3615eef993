"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup: one event each."""

import asyncio
from collections import OrderedDict
from functools import partial
from typing import NamedTuple

from coordinator_logic.errors import Error
from coordinator_logic.handlers import APIS
from coordinator_logic.messages import HeartbeatRequest, HeartbeatResponse, ResponseBody, ResponseEnvelope
from streaming.client.errors import CoordinatorError, error_of
from streaming.gateway.backend import GroupBackend, ask
from streaming.gateway.errors import PATIENT_SECONDS, outage_error, patience, refusal
from streaming.gateway.permissions import Operation
from streaming.gateway.projection import from_wire
from streaming.gateway.request import Caller, ClientRequest

__all__ = ["Heartbeats", "member_request"]

MOST_LATE_ANSWERS = 10_000

LASTING = frozenset(
    {
        Error.ILLEGAL_GENERATION,
        Error.UNKNOWN_MEMBER_ID,
        Error.REBALANCE_IN_PROGRESS,
        Error.FENCED_INSTANCE_ID,
    }
)
"""What stays true of a member in a generation once it is said: a generation that is being left does not come back."""


async def member_request(backend: GroupBackend, api_name: str, request: ClientRequest) -> ResponseBody:
    """Answer a JoinGroup, SyncGroup or LeaveGroup: allowed to whoever may read the group."""
    api = APIS[api_name]
    body = from_wire(request.payload, api.request_type)
    if not await backend.authorizer.allows(request.caller, Operation.READ, body.group_id):
        return refusal(api, body, request.version, Error.GROUP_AUTHORIZATION_FAILED)
    return await ask(backend.channel, api, request.version, body.group_id, body, request.caller)


class _Membership(NamedTuple):
    group_id: str
    member_id: str
    generation_id: int


class Heartbeats:
    """Answers heartbeats, which cannot wait long: a member is told blindly that all is well.

    What the coordinator says of it later is kept, and told with the member's next heartbeat. So a job whose batches
    take longer can tell its members of a rebalance, too.
    """

    def __init__(self, backend: GroupBackend) -> None:
        self._backend = backend
        self._late: OrderedDict[_Membership, Error] = OrderedDict()

    async def handle(self, request: ClientRequest) -> ResponseBody:
        """Answer a heartbeat: allowed to whoever may read the group."""
        body = from_wire(request.payload, HeartbeatRequest)
        if not await self._backend.authorizer.allows(request.caller, Operation.READ, body.group_id):
            return HeartbeatResponse(Error.GROUP_AUTHORIZATION_FAILED)
        return HeartbeatResponse(await self._beat(body, request.version, request.caller))

    async def _beat(self, body: HeartbeatRequest, version: int, caller: Caller) -> Error:
        granted = patience("Heartbeat", body)
        membership = _Membership(body.group_id, body.member_id, body.generation_id)
        known = self._late.pop(membership, None)
        # Also when it is answered from here: in the log it counts for the session.
        sent = self._backend.channel.send(body.group_id, "Heartbeat", version, body, caller, PATIENT_SECONDS)
        answer = sent.answer
        try:
            if known is None:
                await asyncio.wait((answer,), timeout=granted.seconds)
            if answer.done():
                return error_of(answer.result().error_code)
        except CoordinatorError as failure:
            return outage_error(granted, failure, appended=sent.appended)
        finally:
            if not answer.done():
                answer.add_done_callback(partial(self._keep, membership))
        if known is not None:
            return known
        return granted.unanswered if sent.appended else granted.unsent

    def _keep(self, membership: _Membership, answer: "asyncio.Future[ResponseEnvelope]") -> None:
        if answer.cancelled() or answer.exception() is not None:
            return
        error = error_of(answer.result().error_code)
        if error in LASTING:
            self._late[membership] = error
            if len(self._late) > MOST_LATE_ANSWERS:
                self._late.popitem(last=False)
