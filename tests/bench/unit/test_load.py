"""The benchmark's load generators on a real broker."""

from streaming.embedded.broker import EmbeddedBroker
from tests.bench.events import Events, echo
from tests.bench.latency import schedule
from tests.bench.systems import brokers
from tests.support.topics import create_topic, unique


def test_latency_counts_from_when_a_record_was_due(broker: EmbeddedBroker) -> None:
    topic = unique("echo")
    create_topic(broker.bootstrap_servers, topic, 1)
    with Events(broker.bootstrap_servers, topic, topic) as events:
        timings = events.send_on_schedule([echo()], schedule(200, 1.0))
        assert (len(timings.latencies), timings.failed) == (200, 0)
        # These were due half a second ago; that time is part of their latency.
        overdue = events.send_on_schedule([echo()], [-0.5] * 20)
    assert min(overdue.latencies) >= 0.5
    assert min(overdue.late) >= 0.5


def test_a_request_without_a_response_in_time_has_failed(broker: EmbeddedBroker) -> None:
    silent, empty = unique("silent"), unique("empty")
    for topic in (silent, empty):
        create_topic(broker.bootstrap_servers, topic, 1)
    with Events(broker.bootstrap_servers, silent, empty) as events:
        timings = events.send_on_schedule([echo()], [0.0, 0.1], limit_seconds=0.2)
    assert (timings.latencies, timings.failed) == ([], 2)


def test_groups_form_and_send_heartbeats_at_the_brokers_coordinator(broker: EmbeddedBroker) -> None:
    members, seconds = brokers.form_groups(broker.bootstrap_servers, [unique("theirs"), unique("theirs")], 2)
    assert len(members) == 4
    assert len({member.member_id for member in members}) == 4
    assert {member.generation_id for member in members} == {1}
    assert len(seconds) == 2
    timings = brokers.send_on_schedule(broker.bootstrap_servers, members, schedule(100, 0.5))
    assert (len(timings.latencies), timings.failed) == (50, 0)
    stranger = members[0]._replace(member_id="nobody")
    assert brokers.send_on_schedule(broker.bootstrap_servers, [stranger], [0.0]).failed == 1
