"""Clocks that leap: whoever sends heartbeats stays a member, groups form in time, and no offset expires early.

A small world has a true time. A broker's clock gives records their append times, the driver's clock gives batches
theirs, and each is off by what the test says. The operator is the real one, with the job's deadline checks.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coordinator_logic import snapshot
from coordinator_logic.config import CoordinatorConfig
from streaming.contract.topics import TopicNames
from streaming.job.group_batch.processing import process
from streaming.job.group_batch.settings import Settings
from streaming.job.group_batch.starts import Start
from streaming.job.group_batch.state_row import StateRow
from streaming.job.log_order import sort_records
from streaming.job.rows.records import KafkaRecord
from tests.support.properties import examples
from tests.support.request_events import commit, dumped, envelope

START = 1_700_000_000_000
TOPICS = TopicNames()
SESSION_MS = 6_000
HEARTBEAT_MS = 2_000
BATCH_MS = 500
DELAY_MS = 3_000
LATE_MS = 2_000
LONGEST_MS = 2 * DELAY_MS + LATE_MS
"""How long a group may take to form: the second member extends the initial delay once."""

LONGEST_ALONE_MS = 5_000
"""How long a group of a single member may take to form: nobody extends its initial delay."""

SECOND_GROUP_MS = 20_000
"""When the second group forms, since the start."""

MINUTE_MS = 60_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
CONFIG = CoordinatorConfig(
    group_initial_rebalance_delay_ms=DELAY_MS,
    requests_partitions=1,
    late_answer_ms=LATE_MS,
    offsets_retention_minutes=10_080,
)

Offset = Callable[[int], int]
"""How far a clock is ahead (ms), by the true time since the start (ms)."""


def right(_since_start: int) -> int:
    """A clock that is right."""
    return 0


@dataclass
class Client:
    """A static member, which follows the answers as a Kafka client does; times are true."""

    group_id: str
    instance: str
    member_id: str = ""
    generation: int = -1
    waits_for: str = ""
    next_at: int = START
    next_api: str = "JoinGroup"
    asked_at: int = START
    formed_in: list[int] = field(default_factory=list)
    expelled: int = 0
    leader: str = ""

    def request(self, now: int) -> dict[str, Any] | None:
        """The request that the client sends now, if it does."""
        if now < self.next_at or self.waits_for:
            return None
        body: dict[str, Any] = {"groupId": self.group_id, "memberId": self.member_id, "groupInstanceId": self.instance}
        if self.next_api == "JoinGroup":
            body |= {
                "sessionTimeoutMs": SESSION_MS,
                "rebalanceTimeoutMs": MINUTE_MS,
                "protocolType": "consumer",
                "protocols": [{"name": "range", "metadata": ""}],
            }
        else:
            body["generationId"] = self.generation
        if self.next_api == "SyncGroup":
            body["assignments"] = []
        request = envelope(self.next_api, 5 if self.next_api == "JoinGroup" else 3, body)
        self.waits_for = request["correlationId"]
        self.asked_at = now
        return request

    def answer(self, response: dict[str, Any], now: int) -> None:
        """Read an answer."""
        self.waits_for = ""
        self.next_at = now
        error, body = response["errorCode"], response["body"]
        if error == 25:
            self.expelled += 1
            self.member_id, self.generation, self.next_api = "", -1, "JoinGroup"
        elif error:
            self.next_api = "JoinGroup"
        elif self.next_api == "JoinGroup":
            self.formed_in.append(now - self.asked_at)
            self.member_id, self.generation = body["memberId"], body["generationId"]
            self.next_api = "SyncGroup"
        else:
            self.next_api = "Heartbeat"
            self.next_at = now + HEARTBEAT_MS


@dataclass
class World:
    """A broker with one partition, a driver and clients, with a true time ``now``."""

    broker_ahead: Offset = right
    driver_ahead: Offset = right
    now: int = START
    log: list[KafkaRecord] = field(default_factory=list)
    read: int = 0
    groups: dict[str, StateRow] = field(default_factory=dict)
    wake_at: dict[str, int] = field(default_factory=dict)
    clients: list[Client] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    expired: list[str] = field(default_factory=list)

    def append(self, group_id: str, value: bytes) -> None:
        """Append a record with the broker's time."""
        at = self.now + self.broker_ahead(self.now - START)
        self.log.append(KafkaRecord(at, 0, len(self.log), group_id.encode(), value))

    def run(self, ms: int) -> None:
        """Let true time pass, with a batch each ``BATCH_MS``."""
        end = self.now + ms
        while self.now < end:
            for _ in range(BATCH_MS // 100):
                self.now += 100
                for client in self.clients:
                    if (request := client.request(self.now)) is not None:
                        self.append(client.group_id, dumped(request))
            self._batch()

    def _batch(self) -> None:
        batch_time = self.now + self.driver_ahead(self.now - START)
        data: dict[str, list[KafkaRecord]] = defaultdict(list)
        for record in self.log[self.read :]:
            data[(record.key or b"").decode()].append(record)
        self.read = len(self.log)
        timed_out = [group for group, wake_at in self.wake_at.items() if wake_at < batch_time and group not in data]
        configuration = Settings(TOPICS, 4, CONFIG, starts=(Start(started_at=START),), has_deadline_checks=True)
        for group_id in [*data, *timed_out]:
            records = data.get(group_id, [])
            sort_records(records)
            outcome = process(configuration, group_id, records, self.groups.get(group_id), batch_time)
            self.wake_at.pop(group_id, None)
            self.groups.pop(group_id, None)
            if outcome.state is not None:
                self.groups[group_id] = outcome.state
            if outcome.wake_at is not None:
                self.wake_at[group_id] = max(outcome.wake_at, batch_time + 1)
            for row in outcome.rows:
                if row.topic == TOPICS.requests:
                    self.append(group_id, row.value or b"")
                elif row.topic == TOPICS.responses:
                    self._deliver(json.loads(row.value or b""))
                elif row.topic == TOPICS.journal:
                    self._note(json.loads(row.value or b"")["record"])

    def _deliver(self, response: dict[str, Any]) -> None:
        for client in self.clients:
            if client.waits_for == response["correlationId"]:
                client.answer(response, self.now)

    def _note(self, record: dict[str, Any]) -> None:
        if record["type"] == "MemberRemoved":
            self.removed.append(record["memberId"])
        elif record["type"] in ("OffsetsDeleted", "GroupDeleted"):
            self.expired.append(record["type"])


def leaping(*spans: tuple[int, int]) -> Offset:
    """A clock that is ahead by so much (ms) from each time (ms since the start) on."""

    def ahead(since_start: int) -> int:
        return next((ahead_ms for begin, ahead_ms in reversed(spans) if since_start >= begin), 0)

    return ahead


def live_through(world: World, ms: int) -> None:
    """Let two members live through the time; two more form another group in the middle of it."""
    world.append("offsets", dumped(commit("offsets", 1)))
    world.clients += [Client("old", "a"), Client("old", "b")]
    world.run(SECOND_GROUP_MS)
    world.clients += [Client("new", "c", next_at=world.now), Client("new", "d", next_at=world.now)]
    world.run(ms)


def check(world: World, *, formed: Sequence[str] = ("old", "new")) -> None:
    """Nobody was expelled, these groups have formed in time, and nothing has expired."""
    assert world.removed == []
    assert [client.expelled for client in world.clients] == [0, 0, 0, 0]
    assert world.expired == []
    for client in world.clients:
        if client.group_id in formed:
            assert client.formed_in, f"{client.instance} waits for its group"
            assert client.formed_in[0] <= LONGEST_MS
    state = world.groups["offsets"]
    assert len(list(snapshot.decode(state.snapshot).committed_offsets())) == 1


@pytest.mark.parametrize("leap_ms", [MINUTE_MS, HOUR_MS, 8 * DAY_MS, -MINUTE_MS, -HOUR_MS, -8 * DAY_MS])
@pytest.mark.parametrize("clock", ["broker", "driver"])
def test_a_clock_leaps_for_a_while_and_returns(clock: str, leap_ms: int) -> None:
    there_and_back = leaping((20_000, leap_ms), (50_000, 0))
    world = World(broker_ahead=there_and_back) if clock == "broker" else World(driver_ahead=there_and_back)
    live_through(world, 60_000)
    check(world)


@pytest.mark.parametrize("leap_ms", [HOUR_MS, -HOUR_MS])
@pytest.mark.parametrize("clock", ["broker", "driver"])
def test_a_single_member_joins_within_5_s_while_a_clock_is_wrong_and_after_its_return(clock: str, leap_ms: int) -> None:
    there_and_back = leaping((2_000, leap_ms), (20_000, 0))
    world = World(broker_ahead=there_and_back) if clock == "broker" else World(driver_ahead=there_and_back)
    for group, joins_at in (("leapt", 4_000), ("returned", 22_000)):
        world.run(START + joins_at - world.now)
        world.clients.append(Client(group, "alone", next_at=world.now))
    world.run(LONGEST_ALONE_MS + BATCH_MS)
    assert world.removed == []
    for client in world.clients:
        assert client.formed_in, f"{client.group_id} waits for its group"
        assert client.formed_in[0] <= LONGEST_ALONE_MS


@pytest.mark.parametrize("ahead_ms", [MINUTE_MS, HOUR_MS, 8 * DAY_MS])
def test_a_driver_that_is_ahead_for_long_expels_nobody_but_those_that_stop(ahead_ms: int) -> None:
    world = World(driver_ahead=leaping((0, ahead_ms), (90_000, 0)))
    live_through(world, 60_000)
    check(world)
    stopped = world.clients.pop(0)
    world.run(30_000)
    assert world.removed in ([], [stopped.member_id])
    world.run(SESSION_MS)
    assert world.removed == [stopped.member_id]


@pytest.mark.parametrize("ahead_ms", [MINUTE_MS, HOUR_MS, 8 * DAY_MS, -MINUTE_MS, -HOUR_MS, -8 * DAY_MS])
def test_after_a_clock_has_returned_whoever_stops_is_expelled(ahead_ms: int) -> None:
    world = World(broker_ahead=leaping((20_000, ahead_ms), (50_000, 0)))
    live_through(world, 60_000)
    stopped = world.clients.pop(0)
    world.run(SESSION_MS + 3 * BATCH_MS)
    assert world.removed == [stopped.member_id]


SPANS = st.lists(
    st.tuples(
        st.integers(10, 400).map(lambda tenths: tenths * 100),
        st.one_of(st.just(0), st.integers(-10_000, 10_000), st.integers(-6 * DAY_MS, 8 * DAY_MS)),
    ),
    min_size=1,
    max_size=5,
)
"""How long (ms) a clock is ahead by how much (ms); it is never behind by more than the retention time of offsets."""


@given(spans=SPANS)
@examples(60)
def test_however_the_brokers_clock_leaps_members_stay_and_groups_form(spans: list[tuple[int, int]]) -> None:
    world = World(broker_ahead=leaping(*begins(spans)))
    live_through(world, 60_000)
    check(world)


@example(spans=[(1000, 0), (1000, 5100), (1000, 10101)])
@given(spans=SPANS)
@examples(60)
def test_however_the_drivers_clock_leaps_members_stay_and_groups_form(spans: list[tuple[int, int]]) -> None:
    """Except a group that waits while the driver's clock goes back: Spark calls it when the clock has caught up."""
    clock = begins(spans)
    world = World(driver_ahead=leaping(*clock))
    live_through(world, 60_000)
    steps_back = [begin for (_, before), (begin, ahead_ms) in pairwise([(0, 0), *clock]) if ahead_ms < before]
    begun = {"old": 0, "new": SECOND_GROUP_MS}
    check(
        world,
        formed=[group for group, at in begun.items() if not any(at <= step <= at + LONGEST_MS for step in steps_back)],
    )


def begins(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The spans with their beginnings (ms since the start) instead of their durations; then the clock is right."""
    ends = list(accumulate(duration for duration, _ in spans))
    return [*zip([0, *ends], [ahead_ms for _, ahead_ms in spans], strict=False), (ends[-1], 0)]
