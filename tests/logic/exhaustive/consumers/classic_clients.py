"""Clients of the classic protocol in a consumer group: cooperative consumers that join, sync and send heartbeats."""

from collections.abc import Iterator
from functools import partial

from coordinator_logic.embedded_protocols import (
    Subscription,
    TopicPartition,
    decode_assignment,
    encode_subscription,
)
from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeavingMember,
    Protocol,
    SyncGroupRequest,
    SyncGroupResponse,
)
from tests.logic.exhaustive.consumers.requests import REVOKE_MS
from tests.logic.exhaustive.consumers.stepping import Stepping, consumer_of, errors_of
from tests.logic.exhaustive.consumers.world import GROUP_ID, Client, NamedPlay, Stage, World, topic_id
from tests.logic.invariants import Step

PROTOCOL_STEPS = ("beats", "rejoins", "syncs")
"""What a client does in turn to reach its target."""

SESSION_MS = 20_000


class ClassicClients:
    """The moves of clients of the classic protocol."""

    def __init__(self, stepping: Stepping) -> None:
        self._stepping, self._scope = stepping, stepping.scope

    def moves(self, world: World, index: int) -> Iterator[NamedPlay]:
        """The moves of a client in a state.

        It joins no group without members, which it would make a classic group.
        """
        client, consumer = world.clients[index], consumer_of(world.decoded())
        if client.epoch is None:
            if consumer is not None and consumer.members:
                yield "joins", partial(self._join, index=index)
            return
        if client.stage is Stage.MUST_JOIN:
            yield "rejoins", partial(self._join, index=index)
        elif client.stage is Stage.MUST_SYNC:
            yield "syncs", partial(self._sync, index=index)
        yield "beats", partial(self._beat, index=index)
        yield "leaves", partial(self._leave, index=index)

    def _join(self, world: World, index: int) -> World:
        client = world.clients[index]
        names = {topic_id(name): name for name, _ in self._scope.topics}
        owned = [TopicPartition(names[each], partition) for each, partition in sorted(client.owned)]
        metadata = encode_subscription(Subscription(list(self._scope.subscriptions[0]), owned_partitions=owned))
        body = JoinGroupRequest(
            GROUP_ID,
            SESSION_MS,
            "consumer",
            [Protocol("range", metadata)],
            REVOKE_MS,
            client.member_id,
            topics=world.catalogue(self._scope),
        )
        after, executed = self._stepping.send(world, body)
        (response,) = executed.result.responses
        answer = response.body
        assert isinstance(answer, JoinGroupResponse)
        before = consumer_of(world.decoded())
        # An id that is not known is that of a new member, except in a group without members.
        expected = Error.NONE if before is not None and before.members else Error.UNKNOWN_MEMBER_ID
        assert answer.error_code == expected, f"a correct client is answered {Error(answer.error_code).name}"
        if expected is not Error.NONE:
            return after.with_client(index, client.out())
        assert before is not None
        returns = client.epoch is not None and client.member_id not in before.members
        joined = client._replace(epoch=answer.generation_id, stage=Stage.MUST_SYNC)
        return after.with_client(index, joined._replace(has_old_partitions=client.has_old_partitions or returns))

    def _sync(self, world: World, index: int) -> World:
        client = world.clients[index]
        assert client.epoch is not None
        body = SyncGroupRequest(
            GROUP_ID, client.epoch, client.member_id, protocol_type="consumer", protocol_name="range"
        )
        after, executed = self._stepping.send(world, body)
        error = self._error(world, client, executed)
        if error is Error.UNKNOWN_MEMBER_ID:
            return after.with_client(index, client.out())
        if error is Error.REBALANCE_IN_PROGRESS:
            return after.with_client(index, client._replace(stage=Stage.MUST_JOIN))
        (response,) = executed.result.responses
        assert isinstance(response.body, SyncGroupResponse)
        partitions = decode_assignment(response.body.assignment).partitions
        owned = frozenset((topic_id(name), partition) for name, partition in partitions)
        # A cooperative consumer gives up at once what it has lost, and joins again to say so.
        stage = Stage.SETTLED if client.owned <= owned else Stage.MUST_JOIN
        settled = client._replace(owned=owned, received=owned, stage=stage, has_old_partitions=False)
        return after.with_client(index, settled)

    def _beat(self, world: World, index: int) -> World:
        client = world.clients[index]
        assert client.epoch is not None
        after, executed = self._stepping.send(world, HeartbeatRequest(GROUP_ID, client.epoch, client.member_id))
        error = self._error(world, client, executed)
        if error is Error.UNKNOWN_MEMBER_ID:
            return after.with_client(index, client.out())
        if error is Error.REBALANCE_IN_PROGRESS:
            # Between a join and its sync, a client learns the same from the sync.
            stage = client.stage if client.stage is Stage.MUST_SYNC else Stage.MUST_JOIN
            return after.with_client(index, client._replace(stage=stage))
        return after

    def _leave(self, world: World, index: int) -> World:
        client = world.clients[index]
        body = LeaveGroupRequest(GROUP_ID, members=[LeavingMember(client.member_id)])
        after, executed = self._stepping.send(world, body)
        self._error(world, client, executed)
        return after.with_client(index, client.out())

    def _error(self, world: World, client: Client, executed: Step) -> Error:
        """The error of the answer, which must be one that a client that follows the protocol can get."""
        (error,) = errors_of(executed).values()
        before = consumer_of(world.decoded())
        is_member = before is not None and client.member_id in before.members
        expected = (Error.NONE, Error.REBALANCE_IN_PROGRESS) if is_member else (Error.UNKNOWN_MEMBER_ID,)
        assert error in expected, f"a correct client is answered {error.name}"
        return error
