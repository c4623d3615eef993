"""Clients of the consumer group protocol: what each can do in a state, and what it learns from the answers."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from coordinator_logic.errors import Error
from coordinator_logic.groups.consumer.epochs import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from coordinator_logic.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, RequestBody
from tests.logic.exhaustive.consumers.requests import full_heartbeat, heartbeat
from tests.logic.exhaustive.consumers.stepping import Stepping
from tests.logic.exhaustive.consumers.world import Client, NamedPlay, World
from tests.support.parts import consumer_group, consumer_part

PROTOCOL_STEPS = ("follows", "beats, full", "beats, owned")
"""What a client does in turn to reach its target."""


class NewerClients:
    """The moves of clients of the consumer group protocol."""

    def __init__(self, stepping: Stepping) -> None:
        self._stepping, self._scope = stepping, stepping.scope

    def moves(self, world: World, index: int) -> Iterator[NamedPlay]:
        """The moves of a client in a state."""
        client = world.clients[index]
        if client.epoch is not None:
            yield from self._of_member(index, client)
            return
        yield "joins", partial(self._join, index=index)
        if self._scope.loses:
            yield "joins, response lost", partial(self._join, index=index, arrives=False)

    def _of_member(self, index: int, client: Client) -> Iterator[NamedPlay]:
        follows = client.owned == client.received
        if not follows:
            yield "follows", partial(self._follow, index=index)
        ways = ["full"] if client.has_lost else ["owned", *(["quiet"] * self._scope.keeps_quiet)]
        # A client that listed what it owns, and then took more of it because of an older response, could own what
        # the group has given to others meanwhile.
        for way in ways if follows else (each for each in ways if each == "quiet"):
            yield f"beats, {way}", partial(self._beat, index=index, way=way)
            if self._scope.loses and not client.has_lost:
                yield f"beats, {way}, response lost", partial(self._beat, index=index, way=way, arrives=False)
        for names in self._scope.subscriptions if len(self._scope.subscriptions) > 1 and not client.has_lost else ():
            yield f"subscribes to {'+'.join(names)}", partial(self._beat, index=index, way="quiet", names=names)
        if self._scope.leaves:
            yield "leaves", partial(self._leave, index=index, epoch=LEAVE_EPOCH)
        if client.instance_id is not None:
            yield "leaves for a while", partial(self._leave, index=index, epoch=STATIC_LEAVE_EPOCH)

    def _join(self, world: World, index: int, *, arrives: bool = True) -> World:
        client = world.clients[index]
        body = full_heartbeat(client, JOIN_EPOCH, **self._subscription(), topics=world.catalogue(self._scope))
        return self._send_heartbeat(world, index, body, arrives=arrives)

    def _subscription(self) -> dict[str, Any]:
        if self._scope.pattern is not None:
            return {"subscribed_topic_regex": self._scope.pattern}
        return {"subscribed_topic_names": list(self._scope.subscriptions[0])}

    def _beat(
        self, world: World, index: int, way: str, *, names: tuple[str, ...] | None = None, arrives: bool = True
    ) -> World:
        client = world.clients[index]
        assert client.epoch is not None
        if way == "full":
            group = world.decoded()
            member = (
                None
                if group is None or consumer_part(group) is None
                else consumer_group(group).members.get(client.member_id)
            )
            known = self._subscription()
            if member is not None and self._scope.pattern is None:
                known = {"subscribed_topic_names": list(member.subscribed_topic_names)}
            body = full_heartbeat(client, client.epoch, **known)
        elif names is not None:
            topics = world.catalogue(self._scope)
            body = heartbeat(client, client.epoch, subscribed_topic_names=list(names), topics=topics)
        else:
            body = heartbeat(client, client.epoch, client.owned if way == "owned" else None)
        return self._send_heartbeat(world, index, body, arrives=arrives)

    def _leave(self, world: World, index: int, epoch: int) -> World:
        client = world.clients[index]
        after = self._send_heartbeat(world, index, heartbeat(client, epoch), arrives=True)
        # An instance returns as a new process. Its ids alternate, so that there are finitely many states.
        returns_as = {f"m{index}": f"m{index}b"}.get(client.member_id, f"m{index}")
        return after.with_client(index, client.out(returns_as if client.instance_id is not None else None))

    def _send_heartbeat(self, world: World, index: int, body: RequestBody, *, arrives: bool) -> World:
        assert isinstance(body, ConsumerGroupHeartbeatRequest)
        client, before = world.clients[index], world.decoded()
        is_member = (
            before is not None
            and consumer_part(before) is not None
            and body.member_id in consumer_group(before).members
        )
        world, executed = self._stepping.send(world, body)
        (response,) = executed.result.responses
        answer = response.body
        assert isinstance(answer, ConsumerGroupHeartbeatResponse)
        expected = Error.NONE if is_member or body.member_epoch == JOIN_EPOCH else Error.UNKNOWN_MEMBER_ID
        assert answer.error_code == expected, f"a correct client is answered {Error(answer.error_code).name}"
        if body.member_epoch < 0 or expected is not Error.NONE:
            return world.with_client(index, client.out())
        if not arrives:
            lost = client._replace(has_lost=True) if client.epoch is not None else client
            return world.with_client(index, lost)
        assert body.member_epoch == JOIN_EPOCH or answer.member_epoch >= body.member_epoch, "a client's epoch went back"
        received = client.received
        if answer.assignment is not None:
            listed = answer.assignment.topic_partitions
            received = frozenset((each.topic_id, partition) for each in listed for partition in each.partitions)
        after = client._replace(epoch=answer.member_epoch, received=received, has_lost=False)
        return world.with_client(index, after)

    def _follow(self, world: World, index: int) -> World:
        client = world.clients[index]
        return world.with_client(index, client._replace(owned=client.received))
