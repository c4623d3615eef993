"""Groups with a configuration of their own."""

import pytest

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.errors import Error
from coordinator_logic.groups.consumer.group_config import (
    ASSIGNMENT_INTERVAL,
    HEARTBEAT_INTERVAL,
    SESSION_TIMEOUT,
    GroupConfig,
    effective,
)
from coordinator_logic.messages import SetGroupConfigRequest, SetGroupConfigResponse
from coordinator_logic.records import GroupConfigChanged
from tests.logic.driver import Answer
from tests.logic.groups.consumer.driver import Consumer, DrivenConsumers
from tests.support.parts import consumer_part

AT_LEAST = "must be greater than or equal to group.consumer.min"
AT_MOST = "must be less than or equal to group.consumer.max"


def configure(group: DrivenConsumers, **configs: str | None) -> Answer[SetGroupConfigResponse]:
    """Send SetGroupConfig; ``session``, ``heartbeat`` and ``assignment`` stand for the names."""
    names = {"session": SESSION_TIMEOUT, "heartbeat": HEARTBEAT_INTERVAL, "assignment": ASSIGNMENT_INTERVAL}
    by_name = {names.get(name, name): value for name, value in configs.items()}
    return group.send("SetGroupConfig", SetGroupConfigRequest(group.group_id, by_name))


def test_the_groups_own_session_and_heartbeats_hold() -> None:
    group = DrivenConsumers()
    answer = configure(group, session="60000", heartbeat="7000")
    assert answer.body.configs == {HEARTBEAT_INTERVAL: "7000", SESSION_TIMEOUT: "60000"}
    assert group.enter("a", "t", topics={"t": 2}).body.heartbeat_interval_ms == 7_000
    assert group.beat("a", 2).body.heartbeat_interval_ms == 7_000, "also for a heartbeat that changes nothing"
    group.sleep(59_999)
    assert "a" in group.consumer.members
    group.sleep(1)
    assert group.consumer.members == {}


def test_a_change_holds_from_the_next_heartbeat_on() -> None:
    group = DrivenConsumers()
    group.enter("a", "t", topics={"t": 2})
    configure(group, session="60000")
    group.sleep(44_000)
    group.beat("a", 2)
    group.sleep(59_999)
    assert "a" in group.consumer.members
    assert configure(group, session=None).body.configs == {}
    group.beat("a", 2)
    group.sleep(45_000)
    assert group.consumer.members == {}


def test_the_groups_own_assignment_interval_holds() -> None:
    group = DrivenConsumers()
    configure(group, assignment="2000")
    group.enter("a", "t", topics={"t": 2})
    group.enter("b", "t")
    assert (group.consumer.epoch, group.consumer.target_epoch) == (3, 2)
    group.sleep(2_000)
    group.beat("b", 2)
    assert group.consumer.target_epoch == 3


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        (
            {"session": "44999"},
            f"consumer.session.timeout.ms {AT_LEAST}.session.timeout.ms",
        ),
        (
            {"session": "60001"},
            f"consumer.session.timeout.ms {AT_MOST}.session.timeout.ms",
        ),
        (
            {"heartbeat": "4999"},
            f"consumer.heartbeat.interval.ms {AT_LEAST}.heartbeat.interval.ms",
        ),
        (
            {"assignment": "15001"},
            f"consumer.assignment.interval.ms {AT_MOST}.assignment.interval.ms",
        ),
        (
            {"assignment": "-1"},
            f"consumer.assignment.interval.ms {AT_LEAST}.assignment.interval.ms",
        ),
        (
            {"assignment": "9" * 5_000},
            f"consumer.assignment.interval.ms {AT_MOST}.assignment.interval.ms",
        ),
        ({"assignment": "1.2"}, "Invalid value 1.2 for configuration consumer.assignment.interval.ms"),
        ({"assignment": ""}, "Invalid value  for configuration consumer.assignment.interval.ms"),
        ({"share.session.timeout.ms": "45000"}, "Unknown group config name: share.session.timeout.ms"),
    ],
)
def test_what_is_wrong_is_refused_and_changes_nothing(configs: dict[str, str], message: str) -> None:
    group = DrivenConsumers()
    configure(group, heartbeat="6000")
    answer = configure(group, **configs)
    assert answer.error is Error.INVALID_CONFIG
    assert (answer.body.error_message or "").startswith(message)
    assert answer.body.configs == {HEARTBEAT_INTERVAL: "6000"}
    assert group.group.configs == {HEARTBEAT_INTERVAL: 6_000}


def test_the_session_must_be_longer_than_the_heartbeat_interval() -> None:
    group = DrivenConsumers(group_consumer_min_session_timeout_ms=5_000)
    assert configure(group, session="5000").error is Error.INVALID_CONFIG
    assert configure(group, session="5001").error is Error.NONE
    assert configure(group, heartbeat="6000").error is Error.INVALID_CONFIG


def test_a_group_that_is_only_configured_stays_until_its_configuration_is_removed() -> None:
    group = DrivenConsumers(offsets_retention_check_interval_ms=1_000)
    assert configure(group).body.configs == {}
    assert not group.exists, "reading creates no group"
    configure(group, session="50000")
    group.sleep(10**9)
    assert group.group.configs == {SESSION_TIMEOUT: 50_000}
    configure(group, session=None)
    group.sleep(1_000)
    assert not group.exists


def test_the_configuration_outlives_members_and_changes_of_the_groups_type() -> None:
    group = DrivenConsumers()
    configure(group, session="50000")
    Consumer(group, "a").join("t", topics={"t": 1}).leave()
    (member,) = group.stable_group(1)
    group.leave(member)
    assert group.group.configs == {SESSION_TIMEOUT: 50_000}
    assert consumer_part(group.group) is None
    assert group.records.count(GroupConfigChanged({SESSION_TIMEOUT: 50_000})) == 1


def test_nothing_is_recorded_if_nothing_changes() -> None:
    group = DrivenConsumers()
    configure(group, session="50000")
    recorded = len(group.records)
    assert configure(group, session="50000", heartbeat=None).error is Error.NONE
    assert len(group.records) == recorded


def test_a_value_outside_of_narrower_bounds_counts_as_the_bound() -> None:
    config = CoordinatorConfig(group_consumer_max_session_timeout_ms=50_000)
    assert effective({SESSION_TIMEOUT: 60_000}, config) == GroupConfig(50_000, 5_000, 1_000)


def test_a_group_id_is_needed() -> None:
    group = DrivenConsumers(group_id="")
    assert configure(group, session="50000").error is Error.INVALID_REQUEST


def test_a_change_that_is_only_checked_changes_nothing() -> None:
    group = DrivenConsumers()
    wanted = {SESSION_TIMEOUT: "60000"}
    checked = group.send("SetGroupConfig", SetGroupConfigRequest(group.group_id, {**wanted}, validate_only=True))
    assert (checked.error, checked.body.configs) == (Error.NONE, wanted)
    assert not group.exists
    assert configure(group, session="1").error is Error.INVALID_CONFIG


def test_an_answer_says_what_holds_without_values_of_the_groups_own() -> None:
    group = DrivenConsumers(group_consumer_heartbeat_interval_ms=6_000)
    held = {ASSIGNMENT_INTERVAL: "0", HEARTBEAT_INTERVAL: "6000", SESSION_TIMEOUT: "45000"}
    assert configure(group, heartbeat="7000").body.defaults == held
    assert configure(group, heartbeat="wrong").body.defaults == held
