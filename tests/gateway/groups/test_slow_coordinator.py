"""Members of consumer groups (KIP-848) behind a coordinator that is slow or away, and gateways that change."""

import asyncio
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    ConsumerGroupHeartbeatAssignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicIdPartitions,
)
from streaming.gateway.groups.awaited_heartbeats import advanced, combined
from tests.gateway.groups.driven.coordinator import Cluster, Gateway, LogicCoordinator
from tests.gateway.groups.driven.member import GROUP, GatewayMember
from tests.support.properties import examples
from tests.support.virtual_time import run_in_virtual_time

MEMBERS, PARTITIONS = 3, 6
RETRIABLE = {"coordinator_not_available", "coordinator_load_in_progress"}
EXAMPLES = 150

Action = tuple[str, int]
ACTIONS = st.one_of(
    st.tuples(st.just("beat"), st.integers(0, MEMBERS - 1)),
    st.tuples(st.sampled_from(["leave", "move"]), st.integers(0, MEMBERS - 1)),
    st.tuples(st.sampled_from(["silent", "answers", "answers", "grow", "wait", "away"]), st.just(0)),
)


class Client:
    """A member that reacts to errors as Kafka's clients do."""

    def __init__(self, gateway: Gateway, number: int) -> None:
        self.member = GatewayMember(gateway, f"m{number}")
        self.is_member = False
        self._sends_everything = False

    async def beat(self) -> None:
        """Send a heartbeat: with all fields to join and after an error, else with what it owns."""
        member = self.member
        if not self.is_member:
            answer = await member.join("t")
        elif self._sends_everything:
            answer = await member.beat(is_full=True, subscribed_topic_names=["t"])
        else:
            answer = await member.beat()
        error = answer.error_code.name
        self._sends_everything = error in RETRIABLE
        if error == "none":
            self.is_member = True
        elif error in ("fenced_member_epoch", "unknown_member_id"):
            self.is_member, member.owned = False, {}
        else:
            assert error in RETRIABLE, error

    async def leave(self) -> None:
        """Leave, whatever the answer is."""
        if self.is_member:
            self.member.owned = {}
            await self.member.leave()
            self.is_member = False


class Story:
    """Clients, two gateways, and a check after each action that no partition has two owners."""

    def __init__(self) -> None:
        self.coordinator, self.cluster = LogicCoordinator(), Cluster(t=PARTITIONS)
        self.gateways = [Gateway(self.coordinator, self.cluster) for _ in range(2)]
        self.clients = [Client(self.gateways[0], number) for number in range(MEMBERS)]

    async def play(self, actions: list[Action]) -> None:
        for action, number in actions:
            await self._act(action, self.clients[number])
            self.check_owners()
        self._answers()
        for _ in range(12):
            for client in self.clients:
                await client.beat()
                self.check_owners()
            for gateway in self.gateways:
                await gateway.notifier.refresh()
        shares = [len(numbers) for client in self.clients for numbers in client.member.owned.values()]
        assert sum(shares) == self.cluster.topics_now["t"][1]
        assert max(shares) - min(shares) <= 1

    async def _act(self, action: str, client: Client) -> None:
        match action:
            case "beat":
                await client.beat()
            case "leave":
                await client.leave()
            case "move":
                # Kafka's clients send all fields when their connection has failed.
                client.member.gateway = self.gateways[client.member.gateway is self.gateways[0]]
                client._sends_everything = True
            case "silent":
                self.coordinator.is_silent = True
            case "away":
                self.coordinator.is_away = True
            case "answers":
                self._answers()
            case "grow":
                self.cluster.grow("t", self.cluster.topics_now["t"][1] + 1)
            case "wait":
                await asyncio.sleep(12)
        await asyncio.sleep(0)

    def _answers(self) -> None:
        self.coordinator.is_away = False
        self.coordinator.catch_up()

    def check_owners(self) -> None:
        owned = [
            (topic, partition)
            for client in self.clients
            for topic, partitions in client.member.owned.items()
            for partition in partitions
        ]
        assert max(Counter(owned).values(), default=1) == 1, [client.member.owned for client in self.clients]


@given(actions=st.lists(ACTIONS, max_size=40))
@examples(EXAMPLES)
def test_no_partition_has_two_owners_and_all_find_one_however_slow_the_coordinator_is(actions: list[Action]) -> None:
    run_in_virtual_time(Story().play(actions))


def response(epoch: int, *partitions: int, error: Error = Error.NONE) -> ConsumerGroupHeartbeatResponse:
    assigned = ConsumerGroupHeartbeatAssignment([TopicIdPartitions("t", list(partitions))]) if partitions else None
    return ConsumerGroupHeartbeatResponse(error, member_id="m", member_epoch=epoch, assignment=assigned)


def test_responses_that_a_client_receives_at_once_add_up() -> None:
    fenced = response(0, error=Error.FENCED_MEMBER_EPOCH)
    assert combined(3, None, response(4)) == response(4)
    assert combined(3, response(4, 0, 1), response(5)) == response(5, 0, 1)
    assert combined(3, response(4, 0), response(4, 1)) == response(4, 1)
    assert combined(3, response(3), fenced) == fenced
    assert combined(3, response(4, 0), fenced) == response(4, 0)
    assert combined(3, fenced, response(4)) == response(4)


def test_a_heartbeat_that_goes_on_with_a_new_assignment_does_not_say_what_the_member_owns() -> None:
    heartbeat = ConsumerGroupHeartbeatRequest(GROUP, "m", 3, topic_partitions=[TopicIdPartitions("t", [0])])
    assert advanced(heartbeat, response(4, 0, 1)) == ConsumerGroupHeartbeatRequest(GROUP, "m", 4)
    assert advanced(heartbeat, response(4)).topic_partitions == heartbeat.topic_partitions


def test_while_a_response_is_missing_heartbeats_are_appended_only_to_extend_the_session() -> None:
    coordinator = LogicCoordinator()
    client = Client(Gateway(coordinator, Cluster(t=1)), 0)

    async def story() -> None:
        await client.beat()
        coordinator.is_silent = True
        appended = []
        for _ in range(7):
            await client.beat()
            appended.append(len(coordinator.sent("ConsumerGroupHeartbeat")))
        # Each heartbeat is answered after 5 s. Further ones are appended 10 s after the first, and then every 20 s.
        assert appended == [2, 2, 3, 3, 3, 3, 4]

    run_in_virtual_time(story())
