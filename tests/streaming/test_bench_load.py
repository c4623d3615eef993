"""The benchmark's load generators against a real broker: what they report is what happened."""

from streaming.broker import EmbeddedBroker
from tests.bench import brokers
from tests.bench.events import Events, echo
from tests.bench.latency import schedule
from tests.streaming.client_support import create_topic, unique


def test_every_record_that_answers_itself_is_timed_from_when_it_was_due(broker: EmbeddedBroker) -> None:
    topic = unique("echo")
    create_topic(broker.bootstrap_servers, topic, 1)
    with Events(broker.bootstrap_servers, topic, topic) as events:
        timings = events.beat([echo()], schedule(200, 1.0))
        assert (len(timings.latencies), timings.failed) == (200, 0)
        # Due for half a second already when it can be sent at the earliest: that time counts.
        overdue = events.beat([echo()], [-0.5] * 20)
    assert min(overdue.latencies) >= 0.5
    assert min(overdue.late) >= 0.5


def test_what_is_not_answered_in_time_has_failed(broker: EmbeddedBroker) -> None:
    silent, empty = unique("silent"), unique("empty")
    for topic in (silent, empty):
        create_topic(broker.bootstrap_servers, topic, 1)
    with Events(broker.bootstrap_servers, silent, empty) as events:
        timings = events.beat([echo()], [0.0, 0.1], limit_seconds=0.2)
    assert (timings.latencies, timings.failed) == ([], 2)


def test_members_of_the_brokers_own_coordinator_form_groups_and_send_heartbeats(broker: EmbeddedBroker) -> None:
    members, seconds = brokers.form_groups(broker.bootstrap_servers, [unique("theirs"), unique("theirs")], 2)
    assert len(members) == 4
    assert len({member.member_id for member in members}) == 4
    assert {member.generation_id for member in members} == {1}
    assert len(seconds) == 2
    timings = brokers.beat(broker.bootstrap_servers, members, schedule(100, 0.5))
    assert (len(timings.latencies), timings.failed) == (50, 0)
    stranger = members[0]._replace(member_id="nobody")
    assert brokers.beat(broker.bootstrap_servers, [stranger], [0.0]).failed == 1
