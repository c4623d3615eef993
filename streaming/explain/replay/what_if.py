"""Replays a case as it was, or with other settings.

As it was, the group handles the requests of the log. With other settings, the clients would have sent other requests: a
client joins again because it is told to. So a what-if takes from the log when a client started, left, and gave a sign
of life or committed; its joins and syncs follow from what the replay answers. See docs/replay.md for what that leaves
out.
"""

import msgspec

from coordinator_logic.apis import HEARTBEAT, JOIN_GROUP, LEAVE_GROUP, OFFSET_COMMIT, SYNC_GROUP
from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.messages import JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest
from streaming.explain.replay.case import Case
from streaming.explain.replay.clients import Clients
from streaming.explain.replay.world import World

_OF_MEMBERS = frozenset({HEARTBEAT.name, OFFSET_COMMIT.name, LEAVE_GROUP.name, SYNC_GROUP.name, JOIN_GROUP.name})


class Changes(msgspec.Struct, frozen=True):
    """What is different in a what-if.

    config: settings of the coordinator.
    static: every client is a static member, named by its client id and host, and does not leave when it stops.
    session_ms: the session timeout of every client; None: its own.
    """

    config: CoordinatorConfig
    static: bool = False
    session_ms: int | None = None


def lived(case: Case) -> World:
    """Replay the requests as they are in the log."""
    world = World(case.group_id, case.config, case.since)
    requests = case.readable()
    for request in requests:
        world.handle(request)
    world.end(_end(requests))
    return world


def what_if(case: Case, changes: Changes) -> World:
    """Replay the requests with other settings. Without any change, prefer :func:`lived`."""
    requests = case.readable()
    players = _Players(case, requests)
    clients = Clients(World(case.group_id, changes.config, case.since), changes.static, changes.session_ms)
    for index, request in enumerate(requests):
        client = players.client_of(index)
        if client is None or request.address.api not in _OF_MEMBERS:
            clients.pass_on(request)
        elif isinstance(request.body, JoinGroupRequest) and index in players.own_joins:
            clients.start(client, request, request.body)
        elif isinstance(request.body, LeaveGroupRequest):
            clients.leave(client, request)
        else:
            clients.sign_of_life(client, request)
    clients.world.end(_end(requests))
    return clients.world


def _end(requests: list[Request]) -> int:
    return max((request.place.timestamp for request in requests), default=0)


_TELL_TO_JOIN = frozenset(
    {Error.REBALANCE_IN_PROGRESS, Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID, Error.MEMBER_ID_REQUIRED}
)


class _Players:
    """Which client has sent which request, from the answers to the requests as they are in the log.

    A client is a name (its instance id, or client id and host) and a number: a client that starts while another of
    that name still sends requests is another one.
    """

    def __init__(self, case: Case, requests: list[Request]) -> None:
        self.own_joins: set[int] = set()
        """The joins that no answer told the client to send: it has started, or wants something new."""
        self._member_ids = _member_ids(case, requests, self.own_joins)
        last_request = {member_id: index for index, member_id in enumerate(self._member_ids) if member_id}
        self._clients: dict[str, str] = {}
        occupants: dict[str, list[str]] = {}
        for index, (request, member_id) in enumerate(zip(requests, self._member_ids, strict=True)):
            if not member_id or member_id in self._clients or not isinstance(request.body, JoinGroupRequest):
                continue
            name = request.body.group_instance_id or f"{request.client_id}@{request.client_host}"
            places = occupants.setdefault(name, [])
            free = [place for place, occupant in enumerate(places) if last_request[occupant] < index]
            place = free[0] if free else len(places)
            places[place : place + 1] = [member_id]
            self._clients[member_id] = f"{name}#{place}" if place else name

    def client_of(self, index: int) -> str | None:
        """The client that has sent a request; None if it was not sent as a member."""
        return self._clients.get(self._member_ids[index])


def _member_ids(case: Case, requests: list[Request], own_joins: set[int]) -> list[str]:
    """The member id with which each request was sent, or that its answer has given; "" for none."""
    world = World(case.group_id, case.config, case.since)
    index_of = {request.address.correlation_id: index for index, request in enumerate(requests)}
    member_ids = [_sender(request) for request in requests]
    told: dict[str, bool] = {}
    for index, request in enumerate(requests):
        sender = member_ids[index]
        # A client that was expelled joins again without an id, under the name that it had.
        name = f"{request.client_id}@{request.client_host}"
        if isinstance(request.body, JoinGroupRequest) and not told.pop(sender or name, False):
            own_joins.add(index)
        for response in world.handle(request):
            answered = index_of.get(response.address.correlation_id)
            if answered is None:
                continue
            if isinstance(response.body, JoinGroupResponse) and response.body.member_id:
                member_ids[answered] = member_ids[answered] or response.body.member_id
            if response.error_code in _TELL_TO_JOIN:
                told[member_ids[answered]] = True
                if response.error_code == Error.UNKNOWN_MEMBER_ID:
                    asker = requests[answered]
                    told[f"{asker.client_id}@{asker.client_host}"] = True
    return member_ids


def _sender(request: Request) -> str:
    body = request.body
    if isinstance(body, LeaveGroupRequest) and len(body.members) == 1:
        return body.members[0].member_id
    member_id = getattr(body, "member_id", "")
    return member_id if isinstance(member_id, str) else ""
