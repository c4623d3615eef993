"""Steps of a group in a search, with every invariant checked after each."""

from dataclasses import dataclass, field

from coordinator_logic.errors import Error
from coordinator_logic.events import Place, ReplyAddress, Request
from coordinator_logic.group import Group
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.members import MemberState
from coordinator_logic.messages import LeaveGroupResponse, OffsetCommitResponse, RequestBody
from coordinator_logic.records import TimerCause
from coordinator_logic.states import State
from coordinator_logic.step import step
from tests.logic.exhaustive.consumers.invariants import check_group
from tests.logic.exhaustive.consumers.world import GROUP_ID, NOW, Scope, World, settled
from tests.logic.invariants import Step, check_step
from tests.support.parts import consumer_group

VERSIONS = {"JoinGroup": 9, "SyncGroup": 5, "Heartbeat": 4, "LeaveGroup": 5}
VERSIONS |= {"ConsumerGroupHeartbeat": 1, "OffsetCommit": 9, "TopicsDescribed": 0}


@dataclass
class Reached:
    """What a search has reached."""

    groups: set[State | None] = field(default_factory=set)
    members: set[MemberState] = field(default_factory=set)
    answers: set[Error] = field(default_factory=set)
    timers: set[str] = field(default_factory=set)


class Stepping:
    """Takes groups through steps, each a moment after the time of every state, and notes what they reach."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.reached = Reached()
        self._offset = 0

    def request(self, body: RequestBody) -> Request:
        """A request with a place and a correlation id of its own."""
        self._offset += 1
        api = type(body).__name__.removesuffix("Request")
        address = ReplyAddress(api, VERSIONS[api], str(self._offset), 0, NOW + 1)
        return Request(Place(NOW + 1, 0, self._offset), address, "client", "/127.0.0.1", body)

    def step(self, world: World, requests: list[Request]) -> Step:
        """Take the group through requests, or, without any, let its due timer fire."""
        config = self.scope.config
        now = NOW + 1 if requests else NOW
        result = step(GROUP_ID, world.decoded(), requests, now, started_at=0, config=config)
        executed = Step(world.decoded(), requests, now, 0, config, result)
        check_step(executed)
        self.reached.answers |= set(errors_of(executed).values())
        causes = [entry.cause for entry in result.journal]
        self.reached.timers |= {cause.timer for cause in causes if isinstance(cause, TimerCause)}
        return executed

    def after(self, world: World, executed: Step) -> World:
        """The world after a step."""
        group = executed.result.group
        consumer = consumer_of(group)
        if consumer is not None:
            check_group(consumer)
            self.reached.members |= {member.state for member in consumer.members.values()}
        self.reached.groups.add(None if group is None else group.state)
        return world._replace(group=settled(group))

    def send(self, world: World, body: RequestBody) -> tuple[World, Step]:
        """Take the group through one request; the world after it, and the step."""
        executed = self.step(world, [self.request(body)])
        return self.after(world, executed), executed


def consumer_of(group: Group | None) -> ConsumerGroup | None:
    """What only a consumer group has."""
    return None if group is None else consumer_group(group)


def errors_of(executed: Step) -> dict[str, Error]:
    """The error of each answer, by correlation id."""
    found = {}
    for response in executed.result.responses:
        error = response.error_code
        if isinstance(response.body, OffsetCommitResponse):
            error = response.body.topics[0].partitions[0].error_code
        elif isinstance(response.body, LeaveGroupResponse):
            error = response.body.members[0].error_code
        found[response.address.correlation_id] = Error(error)
    return found
