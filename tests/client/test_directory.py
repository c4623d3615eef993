"""The directory of all groups, kept current from its topic."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import msgspec
import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from coordinator_logic.messages import GroupChange, ResponseEnvelope
from streaming.client.directory import AnsweredChanges, GroupDirectory, read_directory
from streaming.embedded.broker import EmbeddedBroker
from tests.support.kafka_io import append
from tests.support.topics import create_topic, unique
from tests.support.waiting import LIMIT_SECONDS, wait_until

Follow = Callable[[str], GroupDirectory]


@pytest.fixture
def follow(broker: EmbeddedBroker) -> Iterator[Follow]:
    """Starts to follow a topic; called with its name."""
    with ExitStack() as stack:

        def start(topic: str) -> GroupDirectory:
            directory = GroupDirectory(broker.bootstrap_servers, topic, "follower", {})
            directory.start()
            stack.callback(directory.close)
            return directory

        yield start


@pytest.fixture
def topic(broker: EmbeddedBroker) -> str:
    name = unique("directory")
    create_topic(broker.bootstrap_servers, name, 2, {"cleanup.policy": "compact"})
    return name


def line(group_id: str, members: object = 1, group_state: str = "Stable") -> bytes:
    entry = {
        "groupId": group_id,
        "groupState": group_state,
        "groupType": "classic",
        "protocolType": "consumer",
        "generation": 3,
        "members": members,
    }
    return json.dumps(entry).encode()


def members(directory: GroupDirectory) -> dict[str, int]:
    return {entry.group_id: entry.members for entry in directory.entries()}


def test_the_entries_follow_the_topic(broker: EmbeddedBroker, topic: str, follow: Follow) -> None:
    servers = broker.bootstrap_servers
    append(servers, topic, (b"billing", line("billing", 1)), (b"gone", line("gone")))
    append(servers, topic, (b"orders", line("orders", 5)), partition=1)
    directory = follow(topic)
    assert directory.wait_complete(LIMIT_SECONDS)
    assert members(directory) == {"billing": 1, "gone": 1, "orders": 5}

    append(servers, topic, (b"billing", line("billing", 2)), (b"gone", None))
    wait_until(lambda: members(directory) == {"billing": 2, "orders": 5}, "the entries have changed")


@pytest.mark.parametrize(
    "unreadable",
    [
        pytest.param(b"not JSON", id="not JSON"),
        pytest.param(b"[" * 100_000, id="nested deeply"),
        pytest.param(b"\xff", id="not UTF-8"),
        pytest.param(b'{"groupId": "billing"}', id="fields missing"),
        pytest.param(line("billing", members=10**400), id="more members than a float holds"),
        pytest.param(line("n" * 40_000), id="a name beyond the wire protocol"),
    ],
)
def test_an_unreadable_record_is_left_out_and_counted(
    broker: EmbeddedBroker, topic: str, follow: Follow, unreadable: bytes
) -> None:
    directory = follow(topic)
    append(broker.bootstrap_servers, topic, (b"bad", unreadable), (b"billing", line("billing", 2)))
    wait_until(lambda: members(directory) == {"billing": 2}, "the record behind it is read")
    assert directory.unreadable() == 1
    assert directory.is_alive()


def test_a_directory_is_complete_as_soon_as_its_topic_exists(broker: EmbeddedBroker, follow: Follow) -> None:
    later = unique("directory")
    directory = follow(later)
    assert not directory.wait_complete(0.2)
    assert (directory.entries(), directory.unreadable()) == ([], 0)
    create_topic(broker.bootstrap_servers, later)
    assert directory.wait_complete(LIMIT_SECONDS)


def test_a_closed_directory_is_not_alive(topic: str, broker: EmbeddedBroker) -> None:
    directory = GroupDirectory(broker.bootstrap_servers, topic, "follower", {})
    directory.start()
    assert directory.is_alive()
    directory.close()
    assert not directory.is_alive()


def grow(broker: EmbeddedBroker, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(LIMIT_SECONDS)


def test_partitions_that_are_added_are_read_and_the_newest_record_of_a_group_holds(
    broker: EmbeddedBroker, topic: str, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streaming.client.topic_reader.GROWTH_SECONDS", 0.2)
    servers = broker.bootstrap_servers
    append(servers, topic, (b"moved", line("moved", 1)), (b"gone", line("gone")), (b"stays", line("stays")))
    directory = follow(topic)
    wait_until(lambda: members(directory) == {"moved": 1, "gone": 1, "stays": 1}, "the entries are read")
    grow(broker, topic, 4)
    append(servers, topic, (b"moved", line("moved", 2)), (b"gone", None), partition=3)
    expected = {"moved": 2, "stays": 1}
    wait_until(lambda: members(directory) == expected, "the new partition is read")
    later = follow(topic)
    assert later.wait_complete(LIMIT_SECONDS)
    assert members(later) == expected
    listed = read_directory(servers, topic, "reader", {}, LIMIT_SECONDS)
    assert {entry.group_id: entry.members for entry in listed} == expected


def test_a_change_is_shown_as_soon_as_its_record_is_read(broker: EmbeddedBroker, topic: str, follow: Follow) -> None:
    servers, shown = broker.bootstrap_servers, threading.Event()
    directory = follow(topic)
    assert directory.wait_complete(LIMIT_SECONDS)
    directory.when_shown("billing", GroupChange("0-0", 2), shown.set)
    append(servers, topic, (b"billing", line("billing")), (b"other", line("other")))
    wait_until(lambda: len(members(directory)) == 2, "both are read")
    assert not shown.is_set()
    change = {"incarnation": "0-0", "sequence": 3}
    append(servers, topic, (b"billing", json.dumps(json.loads(line("billing")) | change).encode()))
    assert shown.wait(LIMIT_SECONDS)


def test_the_end_of_the_topic_is_reached(broker: EmbeddedBroker, topic: str, follow: Follow) -> None:
    reached = threading.Event()
    directory = follow(topic)
    assert directory.wait_complete(LIMIT_SECONDS)
    directory.when_read({0: 2, 1: 0}, reached.set)
    assert not reached.is_set()
    append(broker.bootstrap_servers, topic, (b"a", line("a")), (b"b", None))
    assert reached.wait(LIMIT_SECONDS)


def test_a_listing_waits_for_the_change_that_an_answer_has_named(
    broker: EmbeddedBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streaming.client.directory.ANSWERED_SECONDS", LIMIT_SECONDS)
    servers = broker.bootstrap_servers
    append(servers, topic, (b"billing", line("billing", 1)))
    change = {"incarnation": "0-0", "sequence": 3}
    newer = json.dumps(json.loads(line("billing", 2)) | change).encode()
    # Longer than the reading takes without a change to wait for.
    written_later = threading.Timer(2, append, [servers, topic, (b"billing", newer)])
    written_later.start()
    (entry,) = read_directory(servers, topic, "reader", {}, LIMIT_SECONDS, {"billing": GroupChange("0-0", 3)})
    written_later.join()
    assert entry.members == 2


def answer(group_id: str, change: GroupChange | msgspec.UnsetType) -> ResponseEnvelope:
    return ResponseEnvelope("JoinGroup", 0, "1", group_id, 0, msgspec.Raw(b"null"), directory_change=change)


def test_a_client_remembers_the_changes_that_answers_have_named_until_a_listing_has_waited_for_them() -> None:
    changes, first, second = AnsweredChanges(), GroupChange("0-0", 1), GroupChange("0-0", 2)
    changes.note(answer("billing", first))
    changes.note(answer("audit", msgspec.UNSET))
    listed = changes.missing()
    assert listed == {"billing": first}
    changes.note(answer("billing", second))
    changes.listed(listed)
    assert changes.missing() == {"billing": second}
    changes.listed(changes.missing())
    assert changes.missing() == {}
