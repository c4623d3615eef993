"""The consumer, against the coordinator and the broker's records."""

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from coordinator_logic.errors import Error
from coordinator_logic.messages import LeaveGroupRequest, LeavingMember
from streaming.client import (
    CommitFailed,
    Consumer,
    ConsumerRecord,
    CoordinatorClient,
    CoordinatorError,
    FencedInstanceId,
    NoOffsetForPartition,
    OffsetAndMetadata,
    RebalanceListener,
    TopicPartition,
)
from tests.streaming.client_support import (
    Loop,
    RunningCoordinator,
    create_topic,
    places,
    produce,
    unique,
    wait_until,
)

PARTITIONS = 6
COOPERATIVE = ("cooperative-sticky",)

NewConsumer = Callable[..., Consumer]


@pytest.fixture
def topic(coordinator: RunningCoordinator) -> str:
    name = unique("orders")
    create_topic(coordinator.bootstrap_servers, name, PARTITIONS)
    return name


@pytest.fixture
def group_id() -> str:
    return unique("consumers")


@pytest.fixture
def new(coordinator: RunningCoordinator, group_id: str) -> Iterator[NewConsumer]:
    """Makes consumers of the test's group, with short timeouts; closes them in the end."""
    made: list[Consumer] = []

    def new(**settings: Any) -> Consumer:
        defaults = {
            "bootstrap_servers": coordinator.bootstrap_servers,
            "topic_prefix": coordinator.topics.prefix,
            "group_id": group_id,
            "session_timeout_ms": 6_000,
            "heartbeat_interval_ms": 300,
            "max_poll_interval_ms": 30_000,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
        }
        made.append(Consumer(**{**defaults, **settings}))
        return made[-1]

    yield new
    for consumer in made:
        consumer.close()


@pytest.fixture
def fill(coordinator: RunningCoordinator, topic: str) -> Callable[..., None]:
    """Appends ``count`` records to each of the given partitions, or to all."""

    def fill(count: int, partitions: Sequence[int] = range(PARTITIONS)) -> None:
        values = {p: [b"%d of %d" % (number, p) for number in range(count)] for p in partitions}
        produce(coordinator.bootstrap_servers, topic, values)

    return fill


class Notes(RebalanceListener):
    """Notes each call, as its name and the partition numbers."""

    def __init__(self, on_revoked: Callable[[], object] = lambda: None) -> None:
        self.calls: list[tuple[str, list[int]]] = []
        self._on_revoked = on_revoked

    def _note(self, call: str, partitions: Sequence[TopicPartition]) -> None:
        self.calls.append((call, [partition.partition for partition in partitions]))

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self._note("revoked", partitions)
        self._on_revoked()

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self._note("assigned", partitions)

    def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self._note("lost", partitions)


class App:
    """An application: polls on a thread, and keeps what it gets."""

    def __init__(
        self, consumer: Consumer, topic: str, listener: RebalanceListener | None = None, *, commits: bool = False
    ) -> None:
        self.consumer = consumer
        self.records: list[ConsumerRecord] = []
        self._commits = commits
        consumer.subscribe([topic], listener)
        self.loop = Loop(self._turn)

    def _turn(self) -> None:
        records = self.consumer.poll(0.2)
        self.records += records
        if records and self._commits:
            self.consumer.commit_async()

    @property
    def owned(self) -> list[int]:
        return [partition.partition for partition in self.consumer.assignment]

    def close(self) -> None:
        self.loop.end()
        self.consumer.close()


@pytest.fixture
def run(topic: str) -> Iterator[Callable[..., App]]:
    """Runs consumers as applications; ends their loops before the consumers are closed."""
    running: list[App] = []

    def run(consumer: Consumer, listener: RebalanceListener | None = None, *, commits: bool = False) -> App:
        running.append(App(consumer, topic, listener, commits=commits))
        return running[-1]

    yield run
    for app in running:
        app.loop.end()


def poll_until(consumer: Consumer, count: int) -> list[ConsumerRecord]:
    """Poll until so many records have come."""
    records: list[ConsumerRecord] = []

    def enough() -> bool:
        records.extend(consumer.poll(0.2))
        return len(records) >= count

    wait_until(enough, f"{count} records")
    return records


def poll_until_assigned(consumer: Consumer, count: int = PARTITIONS) -> None:
    def assigned() -> bool:
        assert consumer.poll(0.2) == []
        return len(consumer.assignment) == count

    wait_until(assigned, f"{count} partitions are assigned")


def share(*apps: App) -> bool:
    """Whether these have all partitions between them, in shares that differ by one at most."""
    owned = [app.owned for app in apps]
    sizes = [len(part) for part in owned]
    return sorted(n for part in owned for n in part) == list(range(PARTITIONS)) and max(sizes) - min(sizes) <= 1


# ------------------------------------------------------------------------------------------------------------------
# The group as a whole


@pytest.mark.parametrize("strategy", [("range", "cooperative-sticky"), ("roundrobin",), COOPERATIVE, ("sticky",)])
def test_a_group_consumes_every_record_once_while_members_come_and_go(
    new: NewConsumer, run: Callable[..., App], fill: Callable[..., None], strategy: tuple[str, ...]
) -> None:
    settings = {
        "partition_assignment_strategy": strategy,
        "enable_auto_commit": True,
        "auto_commit_interval_ms": 60_000,
    }
    fill(50)
    first = run(new(**settings))
    wait_until(lambda: share(first), "the first has all partitions")
    second = run(new(**settings))
    wait_until(lambda: share(first, second), "two share the partitions")
    fill(50)
    third = run(new(**settings))
    wait_until(lambda: share(first, second, third), "three share the partitions")
    fill(50)
    first.close()
    wait_until(lambda: share(second, third), "the two others share the partitions")
    fill(50)
    second.close()
    wait_until(lambda: share(third), "the last has all partitions")
    apps = [first, second, third]
    expected = {(partition, offset) for partition in range(PARTITIONS) for offset in range(200)}
    wait_until(lambda: {p for app in apps for p in places(app.records)} == expected, "every record is consumed")
    third.close()
    assert len([p for app in apps for p in places(app.records)]) == len(expected), "no record came twice"
    assert all(app.loop.failure is None for app in apps)


def test_records_come_whole_and_in_order(coordinator: RunningCoordinator, new: NewConsumer, topic: str) -> None:
    produce(coordinator.bootstrap_servers, topic, {2: [b"one", b"two"]})
    consumer = new()
    consumer.subscribe([topic])
    one, two = poll_until(consumer, 2)
    assert (one.topic, one.partition, one.offset, one.value) == (topic, 2, 0, b"one")
    assert one.key == b"key of b'one'"
    assert one.timestamp > 0
    assert (two.offset, two.value) == (1, b"two")


def test_no_more_than_max_poll_records_come_at_once(new: NewConsumer, topic: str, fill: Callable[..., None]) -> None:
    fill(30)
    consumer = new(max_poll_records=7)
    consumer.subscribe([topic])
    seen: list[ConsumerRecord] = []
    while len(seen) < 30 * PARTITIONS:
        records = consumer.poll(5)
        assert 0 < len(records) <= 7 or not seen
        seen += records
    assert len(set(places(seen))) == 30 * PARTITIONS


# ------------------------------------------------------------------------------------------------------------------
# Rebalancing


def test_an_eager_consumer_gives_everything_up_before_it_joins_again(new: NewConsumer, run: Callable[..., App]) -> None:
    notes, others = Notes(), Notes()
    first = run(new(), notes)
    wait_until(lambda: share(first), "the first has all partitions")
    second = run(new(), others)
    wait_until(lambda: share(first, second), "both have their share")
    first.loop.end()
    assert notes.calls[:2] == [("assigned", [0, 1, 2, 3, 4, 5]), ("revoked", [0, 1, 2, 3, 4, 5])]
    assert notes.calls[2][0] == "assigned"
    assert {call for call, _ in notes.calls} == {"assigned", "revoked"}


def test_a_cooperative_consumer_gives_up_only_what_others_get_in_two_steps(
    new: NewConsumer, run: Callable[..., App], fill: Callable[..., None]
) -> None:
    first_notes, second_notes = Notes(), Notes()
    first = run(new(partition_assignment_strategy=COOPERATIVE), first_notes)
    wait_until(lambda: share(first), "the first has all partitions")
    second = run(new(partition_assignment_strategy=COOPERATIVE), second_notes)
    wait_until(lambda: share(first, second), "both have their share")
    wait_until(lambda: len(first_notes.calls) >= 4, "the second rebalance ends at the first, too")
    kept, moved = first.owned, second.owned
    assert first_notes.calls == [
        ("assigned", [0, 1, 2, 3, 4, 5]),
        ("revoked", moved),
        ("assigned", []),
        ("assigned", []),
    ]
    assert second_notes.calls == [("assigned", []), ("assigned", moved)]
    fill(10, kept)
    wait_until(lambda: len(first.records) == 10 * len(kept), "the first goes on with what it kept")


def test_a_listener_may_commit_what_is_being_revoked(
    new: NewConsumer, run: Callable[..., App], fill: Callable[..., None], topic: str
) -> None:
    fill(5)
    consumer = new()
    app = run(consumer, Notes(on_revoked=lambda: consumer.commit()))
    wait_until(lambda: len(app.records) == 5 * PARTITIONS, "all records are consumed")
    app.close()
    committed = new().committed([TopicPartition(topic, p) for p in range(PARTITIONS)])
    assert {offset.offset for offset in committed.values() if offset is not None} == {5}


def test_an_expelled_consumer_loses_its_partitions_and_joins_again(
    coordinator: RunningCoordinator, new: NewConsumer, run: Callable[..., App], group_id: str
) -> None:
    notes = Notes()
    app = run(new(), notes)
    wait_until(lambda: share(app), "it has all partitions")
    expel(coordinator, group_id, app.consumer.generation.member_id)
    wait_until(lambda: len(notes.calls) >= 3, "it is told and assigned again")
    everything = list(range(PARTITIONS))
    assert notes.calls[:3] == [("assigned", everything), ("lost", everything), ("assigned", everything)]


def expel(coordinator: RunningCoordinator, group_id: str, member_id: str) -> None:
    """Remove a member behind its back, as an administrator does."""
    with CoordinatorClient(coordinator.bootstrap_servers, topic_prefix=coordinator.topics.prefix) as admin:
        left = admin.leave_group(LeaveGroupRequest(group_id, members=[LeavingMember(member_id)]))
        assert left.members[0].error_code == 0


def test_a_consumer_that_does_not_poll_leaves_and_comes_back(
    new: NewConsumer, run: Callable[..., App], topic: str
) -> None:
    notes = Notes()
    stuck = new(max_poll_interval_ms=7_000)
    stuck.subscribe([topic], notes)
    poll_until_assigned(stuck)
    other = run(new())
    # Until the poll timeout expires the other one has to wait: the group is rebalancing and stuck does not join.
    wait_until(lambda: share(other), "the other has all partitions")
    assert len(notes.calls) == 1
    back = Loop(lambda: stuck.poll(0.2))
    try:
        wait_until(lambda: len(stuck.assignment) == 3 == len(other.owned), "they share the partitions")
    finally:
        back.end()
    assert [call for call, _ in notes.calls] == ["assigned", "lost", "assigned"]


def test_changing_the_subscription_rebalances(coordinator: RunningCoordinator, new: NewConsumer, topic: str) -> None:
    other_topic = unique("invoices")
    create_topic(coordinator.bootstrap_servers, other_topic, 2)
    consumer = new(partition_assignment_strategy=COOPERATIVE)
    notes = Notes()
    consumer.subscribe([topic], notes)
    poll_until_assigned(consumer)
    consumer.subscribe([other_topic], notes)
    poll_until_assigned(consumer, 2)
    assert consumer.assignment == [TopicPartition(other_topic, 0), TopicPartition(other_topic, 1)]
    assert [call for call, _ in notes.calls] == ["assigned", "revoked", "assigned"]


def test_unsubscribing_leaves_the_group(
    coordinator: RunningCoordinator, new: NewConsumer, topic: str, group_id: str
) -> None:
    consumer = new()
    notes = Notes()
    consumer.subscribe([topic], notes)
    poll_until_assigned(consumer)
    consumer.unsubscribe()
    assert consumer.assignment == []
    assert notes.calls[-1] == ("revoked", list(range(PARTITIONS)))
    with CoordinatorClient(coordinator.bootstrap_servers, topic_prefix=coordinator.topics.prefix) as admin:
        assert admin.describe_groups([group_id]).groups[0].group_state == "Empty"
    with pytest.raises(RuntimeError, match="not subscribed"):
        consumer.poll(0)
    consumer.subscribe([topic])
    poll_until_assigned(consumer)


def test_a_static_consumer_comes_back_to_its_partitions_without_a_rebalance(
    new: NewConsumer, run: Callable[..., App]
) -> None:
    notes = Notes()
    other = run(new(group_instance_id="i-1"), notes)
    static = run(new(group_instance_id="i-2"))
    wait_until(lambda: share(other, static), "they share the partitions")
    calls, generation, owned = list(notes.calls), static.consumer.generation, static.owned
    static.close()
    back = run(new(group_instance_id="i-2"))
    wait_until(lambda: back.owned == owned, "it has the same partitions again")
    assert back.consumer.generation.generation_id == generation.generation_id
    assert notes.calls == calls


def test_a_fenced_consumer_stops(new: NewConsumer, run: Callable[..., App]) -> None:
    notes = Notes()
    first = run(new(group_instance_id="i-1"), notes)
    wait_until(lambda: share(first), "the first has all partitions")
    second = run(new(group_instance_id="i-1"))
    wait_until(lambda: share(second), "the second has all partitions")
    wait_until(lambda: first.loop.failure, "the first is told")
    assert isinstance(first.loop.failure, FencedInstanceId)
    assert notes.calls[-1] == ("lost", list(range(PARTITIONS)))
    with pytest.raises(CoordinatorError):
        first.consumer.commit({TopicPartition("t", 0): 1})


# ------------------------------------------------------------------------------------------------------------------
# Offsets


def test_what_is_committed_is_where_the_next_member_begins(
    new: NewConsumer, topic: str, fill: Callable[..., None]
) -> None:
    fill(10)
    consumer = new()
    consumer.subscribe([topic])
    poll_until(consumer, 10 * PARTITIONS)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    assert consumer.committed([first, second]) == {first: None, second: None}
    consumer.commit()
    assert consumer.committed([first])[first] == OffsetAndMetadata(10, "", 0)
    consumer.commit({second: OffsetAndMetadata(4, "checkpoint 7")})
    assert consumer.committed([second])[second] == OffsetAndMetadata(4, "checkpoint 7", -1)
    consumer.close()
    successor = new()
    successor.subscribe([topic])
    assert places(poll_until(successor, 6)) == [(1, offset) for offset in range(4, 10)]
    assert successor.position(first) == 10


def test_asynchronous_commits_call_back_in_order(new: NewConsumer, topic: str, fill: Callable[..., None]) -> None:
    consumer = new()
    consumer.subscribe([topic])
    poll_until_assigned(consumer)
    partition = TopicPartition(topic, 0)
    told: list[tuple[int, CoordinatorError | None]] = []
    main = threading.current_thread()
    for offset in range(1, 6):

        def callback(offsets: Any, failure: CoordinatorError | None) -> None:
            assert threading.current_thread() is main
            told.append((offsets[partition].offset, failure))

        consumer.commit_async(callback, {partition: offset})
    assert told == []
    wait_until(lambda: consumer.poll(0.05) == [] and len(told) == 5, "all callbacks are called")
    assert told == [(offset, None) for offset in range(1, 6)]
    committed = consumer.committed([partition])[partition]
    assert committed is not None
    assert committed.offset == 5


def test_metadata_that_is_too_large_fails_its_partition(new: NewConsumer, topic: str) -> None:
    consumer = new()
    consumer.subscribe([topic])
    poll_until_assigned(consumer)
    with pytest.raises(CoordinatorError, match=f"{topic}-3") as raised:
        consumer.commit({TopicPartition(topic, 3): OffsetAndMetadata(1, "x" * 5_000)})
    assert raised.value.error is Error.OFFSET_METADATA_TOO_LARGE


def test_an_expelled_consumer_cannot_commit(
    coordinator: RunningCoordinator, new: NewConsumer, topic: str, group_id: str
) -> None:
    # Heartbeats are rare here, so that the commit is what brings the news.
    consumer = new(session_timeout_ms=60_000, heartbeat_interval_ms=50_000)
    consumer.subscribe([topic])
    poll_until_assigned(consumer)
    expel(coordinator, group_id, consumer.generation.member_id)
    with pytest.raises(CommitFailed, match="UNKNOWN_MEMBER_ID"):
        consumer.commit({TopicPartition(topic, 0): 1})
    with pytest.raises(CommitFailed):
        consumer.commit({TopicPartition(topic, 0): 1})


def test_auto_commit_happens_on_close(new: NewConsumer, topic: str, fill: Callable[..., None]) -> None:
    fill(10)
    consumer = new(enable_auto_commit=True, auto_commit_interval_ms=600_000)
    consumer.subscribe([topic])
    poll_until(consumer, 10 * PARTITIONS)
    consumer.close()
    committed = new().committed([TopicPartition(topic, p) for p in range(PARTITIONS)])
    assert {offset.offset for offset in committed.values() if offset is not None} == {10}
    assert None not in committed.values()


def test_auto_commit_happens_at_its_interval(new: NewConsumer, topic: str, fill: Callable[..., None]) -> None:
    fill(10)
    consumer = new(enable_auto_commit=True, auto_commit_interval_ms=100)
    consumer.subscribe([topic])
    poll_until(consumer, 10 * PARTITIONS)
    partition = TopicPartition(topic, 5)

    def committed() -> bool:
        consumer.poll(0.1)
        offset = consumer.committed([partition])[partition]
        return offset is not None and offset.offset == 10

    wait_until(committed, "the position is committed")


def test_without_auto_commit_nothing_is_committed(new: NewConsumer, topic: str, fill: Callable[..., None]) -> None:
    fill(1)
    consumer = new()
    consumer.subscribe([topic])
    poll_until(consumer, PARTITIONS)
    consumer.close()
    assert set(new().committed([TopicPartition(topic, p) for p in range(PARTITIONS)]).values()) == {None}


def test_latest_begins_with_what_comes_after_the_assignment(
    new: NewConsumer, topic: str, fill: Callable[..., None]
) -> None:
    fill(10)
    consumer = new(auto_offset_reset="latest")
    consumer.subscribe([topic])
    poll_until_assigned(consumer)
    assert [consumer.position(partition) for partition in consumer.assignment] == [10] * PARTITIONS
    fill(1)
    assert sorted(places(poll_until(consumer, PARTITIONS))) == [(p, 10) for p in range(PARTITIONS)]


def test_latest_is_remembered_though_nothing_came(new: NewConsumer, topic: str, fill: Callable[..., None]) -> None:
    fill(10)
    consumer = new(auto_offset_reset="latest")
    consumer.subscribe([topic])
    poll_until_assigned(consumer)
    assert consumer.position(TopicPartition(topic, 0)) == 10
    consumer.commit()
    consumer.close()
    fill(1)
    successor = new(auto_offset_reset="latest")
    successor.subscribe([topic])
    assert sorted(places(poll_until(successor, PARTITIONS))) == [(p, 10) for p in range(PARTITIONS)]


def test_with_no_reset_a_partition_without_an_offset_is_an_error(new: NewConsumer, topic: str) -> None:
    consumer = new(auto_offset_reset="none")
    consumer.subscribe([topic])
    with pytest.raises(NoOffsetForPartition, match=f"no offset committed for {topic}-0"):
        wait_until(lambda: consumer.poll(0.2), "poll raises")


@pytest.mark.parametrize(("reset", "expected"), [("earliest", 0), ("none", None)])
def test_an_offset_that_the_log_does_not_have_is_reset(
    new: NewConsumer, topic: str, fill: Callable[..., None], reset: str, expected: int | None
) -> None:
    fill(3, [0])
    committer = new()
    committer.subscribe([topic])
    poll_until(committer, 3)
    committer.commit()
    committer.commit({TopicPartition(topic, 0): 1_000})
    committer.close()
    consumer = new(auto_offset_reset=reset)
    consumer.subscribe([topic])
    if expected is None:
        with pytest.raises(NoOffsetForPartition):
            wait_until(lambda: consumer.poll(0.2), "poll raises")
    else:
        assert places(poll_until(consumer, 3)) == [(0, 0), (0, 1), (0, 2)]


# ------------------------------------------------------------------------------------------------------------------
# Position


def test_seeking_changes_what_comes_next(new: NewConsumer, topic: str, fill: Callable[..., None]) -> None:
    fill(10, [0])
    consumer = new()
    consumer.subscribe([topic])
    poll_until(consumer, 10)
    partition = TopicPartition(topic, 0)
    consumer.seek(partition, 7)
    assert consumer.position(partition) == 7
    assert places(poll_until(consumer, 3)) == [(0, 7), (0, 8), (0, 9)]
    consumer.seek_to_beginning([partition])
    assert places(poll_until(consumer, 10))[0] == (0, 0)
    consumer.seek_to_end([partition])
    fill(1, [0])
    assert places(poll_until(consumer, 1)) == [(0, 10)]
    with pytest.raises(ValueError, match="is not assigned"):
        consumer.seek(TopicPartition("another", 0), 0)


def test_seeking_away_from_records_that_were_fetched_ahead(
    new: NewConsumer, topic: str, fill: Callable[..., None]
) -> None:
    fill(100, [0])
    consumer = new(max_poll_records=5)
    consumer.subscribe([topic])
    poll_until(consumer, 5)
    consumer.seek(TopicPartition(topic, 0), 50)
    assert places(poll_until(consumer, 5))[0] == (0, 50)


def test_a_paused_partition_gives_nothing_until_it_is_resumed(
    new: NewConsumer, topic: str, fill: Callable[..., None]
) -> None:
    fill(10, [0])
    consumer = new(max_poll_records=3)
    consumer.subscribe([topic])
    seen = poll_until(consumer, 3)
    partition = TopicPartition(topic, 0)
    consumer.pause([partition])
    assert consumer.paused == [partition]
    fill(4, [1])
    assert {record.partition for record in poll_until(consumer, 4)} == {1}
    consumer.seek(partition, seen[-1].offset + 1)
    fill(4, [2])
    assert {record.partition for record in poll_until(consumer, 4)} == {2}, "a seek does not resume"
    consumer.resume([partition])
    assert places(seen + poll_until(consumer, 10 - len(seen))) == [(0, offset) for offset in range(10)]


def test_a_pause_ends_with_the_assignment(new: NewConsumer, topic: str, fill: Callable[..., None]) -> None:
    consumer = new()
    notes = Notes()
    consumer.subscribe([topic], notes)
    poll_until_assigned(consumer)
    consumer.pause(consumer.assignment)
    fill(1)
    consumer.unsubscribe()
    consumer.subscribe([topic], notes)
    assert sorted(places(poll_until(consumer, PARTITIONS))) == [(p, 0) for p in range(PARTITIONS)]


def test_a_paused_partition_stays_paused_over_a_cooperative_rebalance(
    new: NewConsumer, run: Callable[..., App], topic: str, fill: Callable[..., None]
) -> None:
    consumer = new(partition_assignment_strategy=COOPERATIVE)
    consumer.subscribe([topic])
    poll_until_assigned(consumer)
    paused = consumer.assignment
    consumer.pause(paused)
    other = run(new(partition_assignment_strategy=COOPERATIVE))
    wait_until(lambda: not consumer.poll(0.1) and len(other.owned) == 3, "they share the partitions")
    assert consumer.paused == consumer.assignment
    assert len(consumer.paused) == 3


# ------------------------------------------------------------------------------------------------------------------
# Use


def test_one_thread_at_a_time(new: NewConsumer, topic: str) -> None:
    consumer = new()
    consumer.subscribe([topic])
    poll_until_assigned(consumer)
    polling = Loop(lambda: consumer.poll(0.5))
    try:

        def refused() -> bool:
            try:
                consumer.commit()
            except RuntimeError as failure:
                return "not for several threads" in str(failure)
            return False

        wait_until(refused, "a call from another thread is refused")
    finally:
        polling.end()
    assert polling.failure is None or "not for several threads" in str(polling.failure)


def test_a_closed_consumer_says_so_and_leaves_no_thread(new: NewConsumer, topic: str, group_id: str) -> None:
    client_id = unique("app")
    consumer = new(client_id=client_id)
    consumer.subscribe([topic])
    poll_until_assigned(consumer)
    consumer.close()
    consumer.close()
    with pytest.raises(RuntimeError, match="the consumer is closed"):
        consumer.poll(0)
    names = [thread.name for thread in threading.enumerate()]
    assert not [name for name in names if client_id in name or group_id in name]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"group_id": ""}, "group_id must not be empty"),
        ({"auto_offset_reset": "newest"}, "auto_offset_reset is 'newest'"),
        ({"max_poll_records": 0}, r"max_poll_records \(0\) must be positive"),
        ({"partition_assignment_strategy": ["rnage"]}, "no assignor is called 'rnage'"),
        ({"partition_assignment_strategy": []}, "must name an assignor"),
        ({"heartbeat_interval_ms": 9_000}, "must be positive and less than session_timeout_ms"),
    ],
)
def test_wrong_settings_are_named(new: NewConsumer, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        new(**settings)


def test_an_unknown_setting_is_named(new: NewConsumer) -> None:
    with pytest.raises(TypeError, match="fetch_min_bites"):
        new(fetch_min_bites=1)
