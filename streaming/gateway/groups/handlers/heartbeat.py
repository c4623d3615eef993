"""Heartbeat, which the gateway may answer before the coordinator does."""

import asyncio
from collections import OrderedDict
from functools import partial
from typing import NamedTuple

from coordinator_logic.apis import HEARTBEAT
from coordinator_logic.errors import Error
from coordinator_logic.messages import HeartbeatRequest, HeartbeatResponse, Message, ResponseEnvelope
from streaming.client.errors import CoordinatorError, error_of
from streaming.gateway.groups.backend import GroupBackend
from streaming.gateway.groups.error_responses import outage_error
from streaming.gateway.groups.timeout_policies import GroupTimeouts, TimeoutPolicy, consumer_policy
from streaming.gateway.security.permissions import Operation
from streaming.gateway.wire.client_request import Caller, ClientRequest

MAX_LATE_ERRORS = 10_000

LASTING_ERRORS = frozenset(
    {
        Error.ILLEGAL_GENERATION,
        Error.UNKNOWN_MEMBER_ID,
        Error.REBALANCE_IN_PROGRESS,
        Error.FENCED_INSTANCE_ID,
    }
)
"""Errors that stay true of a member in a generation: a group never returns to a generation that it is leaving."""


def heartbeat_policy(timeouts: GroupTimeouts, _body: Message | None = None) -> TimeoutPolicy:
    """NONE without a response, as a broker answers while it loads a group.

    librdkafka gives up its member id when no heartbeat succeeds for a session. The heartbeat in the log will extend the
    session, so NONE is true. A heartbeat that is not in the log will not: the client looks up its coordinator and
    continues.
    """
    return consumer_policy(timeouts)._replace(unanswered=Error.NONE, unsent=Error.COORDINATOR_NOT_AVAILABLE)


class _Membership(NamedTuple):
    group_id: str
    member_id: str
    generation_id: int


class HeartbeatHandler:
    """Answers heartbeats within their timeout, with NONE if the coordinator has not answered by then.

    If the coordinator's late response is an error, the member's next heartbeat is answered with that error. So members
    learn of a rebalance even when the job's batches take longer than the timeout.
    """

    def __init__(self, backend: GroupBackend) -> None:
        self._backend = backend
        self._late_errors: OrderedDict[_Membership, Error] = OrderedDict()

    async def handle(self, request: ClientRequest) -> HeartbeatResponse:
        """Answer a heartbeat. The caller needs READ on the group."""
        body: HeartbeatRequest = request.payload
        if not await self._backend.authorizer.allows(request.caller, Operation.READ, body.group_id):
            return HeartbeatResponse(Error.GROUP_AUTHORIZATION_FAILED)
        return HeartbeatResponse(await self._heartbeat(body, request.version, request.caller))

    async def _heartbeat(self, body: HeartbeatRequest, version: int, caller: Caller) -> Error:
        policy = self._backend.policies.of(HEARTBEAT, body)
        membership = _Membership(body.group_id, body.member_id, body.generation_id)
        late_error = self._late_errors.pop(membership, None)
        # Appended even when the answer is known: a heartbeat in the log extends the session.
        timeout = self._backend.policies.timeouts.late_heartbeat_seconds
        event = self._backend.channel.send(body.group_id, HEARTBEAT.name, version, body, caller, timeout)
        response = event.response
        try:
            if late_error is None:
                await asyncio.wait((response,), timeout=policy.seconds)
            if response.done():
                return error_of(response.result().error_code)
        except CoordinatorError as failure:
            return outage_error(policy, failure, appended=event.appended)
        finally:
            if not response.done():
                response.add_done_callback(partial(self._remember_late_error, membership))
        if late_error is not None:
            return late_error
        return policy.unanswered if event.appended else policy.unsent

    def _remember_late_error(self, membership: _Membership, response: "asyncio.Future[ResponseEnvelope]") -> None:
        if response.cancelled() or response.exception() is not None:
            return
        error = error_of(response.result().error_code)
        if error in LASTING_ERRORS:
            self._late_errors[membership] = error
            if len(self._late_errors) > MAX_LATE_ERRORS:
                self._late_errors.popitem(last=False)
