"""What a consumer group refuses: the texts are Kafka's, and a refused JoinGroup names no member."""

from collections.abc import Callable

import pytest

from coordinator_logic.embedded_protocols import Assignment, Subscription, encode_assignment, encode_subscription
from coordinator_logic.errors import Error
from coordinator_logic.messages import JoinGroupResponse
from tests.logic.driver import Answer, listing
from tests.logic.groups.consumer.driver import DrivenConsumers

CANNOT = "Cannot upgrade classic group the-group to consumer group because"

Join = Callable[[DrivenConsumers], Answer[JoinGroupResponse]]


@pytest.mark.parametrize(
    ("join", "error"),
    [
        pytest.param(lambda g: g.join("b", protocol_type="connect"), Error.INCONSISTENT_GROUP_PROTOCOL, id="type"),
        pytest.param(lambda g: g.join("b", protocols=[]), Error.INCONSISTENT_GROUP_PROTOCOL, id="no protocols"),
        pytest.param(lambda g: g.join("b", instance="i"), Error.UNKNOWN_MEMBER_ID, id="an unknown instance"),
        pytest.param(lambda g: g.join("b", instance="s"), Error.FENCED_INSTANCE_ID, id="another's instance"),
        pytest.param(lambda g: g.join("b"), Error.UNKNOWN_SERVER_ERROR, id="malformed metadata"),
        pytest.param(lambda g: g.join("b", protocols=listing(*"abc")), Error.GROUP_MAX_SIZE_REACHED, id="full"),
    ],
)
def test_a_refused_join_names_no_member(join: Join, error: Error) -> None:
    size = 1 if error is Error.GROUP_MAX_SIZE_REACHED else 10
    group = DrivenConsumers(group_consumer_max_size=size)
    group.enter("a", "t", topics={"t": 1}, instance_id="s")
    refused = join(group)
    assert (refused.error, refused.body.member_id) == (error, "")


def test_a_join_that_every_group_refuses_names_its_member() -> None:
    group = DrivenConsumers()
    group.enter("a", "t", topics={"t": 1})
    refused = group.join("b", session_ms=1)
    assert (refused.error, refused.body.member_id) == (Error.INVALID_SESSION_TIMEOUT, "b")


def test_a_join_is_told_the_id_that_it_needs() -> None:
    group = DrivenConsumers()
    group.enter("a", "t", topics={"t": 1})
    required = group.join()
    assert required.error is Error.MEMBER_ID_REQUIRED
    assert required.body.member_id


@pytest.mark.parametrize(
    ("epoch", "missing"), [(-1, "Group the-group not found."), (5, "Consumer group the-group not found.")]
)
def test_a_group_that_does_not_exist_is_called_as_in_kafka(epoch: int, missing: str) -> None:
    refused = DrivenConsumers().beat("a", epoch)
    assert (refused.error, refused.body.error_message) == (Error.GROUP_ID_NOT_FOUND, missing)


def test_the_supported_assignors_are_listed_in_kafkas_order() -> None:
    refused = DrivenConsumers(group_consumer_assignors="range,uniform").enter("a", "t", server_assignor="sticky")
    text = "ServerAssignor sticky is not supported. Supported assignors: uniform, range."
    assert (refused.error, refused.body.error_message) == (Error.UNSUPPORTED_ASSIGNOR, text)


@pytest.mark.parametrize(
    ("pattern", "mistake"),
    [
        ("(", "missing closing )"),
        ("[a", "missing closing ]"),
        ("a**", "invalid nested repetition operator"),
        ("*a", "missing argument to repetition operator"),
        ("a{2,1}", "invalid repeat count"),
        ("\\", "trailing backslash at end of expression"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        ("(?<n", "invalid named capture"),
        ("[b-a]", "invalid character class range"),
        ("a)", "regexp/syntax: internal error"),
        ("it's `a (", "missing closing )"),
    ],
)
def test_the_mistake_in_a_pattern_is_called_as_in_kafka(pattern: str, mistake: str) -> None:
    refused = DrivenConsumers().enter("a", subscribed_topic_regex=pattern)
    text = f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {mistake}."
    assert (refused.error, refused.body.error_message) == (Error.INVALID_REGULAR_EXPRESSION, text)


def test_a_classic_group_whose_assignor_has_data_of_its_own_stays_classic() -> None:
    group = DrivenConsumers()
    metadata = encode_subscription(Subscription(["t"]))
    (member,) = group.join_with_members(1, protocols=listing("custom", metadata=metadata))
    group.sync(member, {member.member_id: encode_assignment(Assignment(user_data=b"!"))}, protocol_name="custom")
    text = (
        f"{CANNOT} an unsupported custom assignor is in use. Please refer to the documentation or switch to a default "
        "assignor before re-attempting the upgrade."
    )
    refused = group.enter("a", "t", topics={"t": 1})
    assert (refused.error, refused.body.error_message) == (Error.GROUP_ID_NOT_FOUND, text)


def test_a_classic_group_with_malformed_metadata_stays_classic() -> None:
    group = DrivenConsumers()
    (member,) = group.join_with_members(1, protocols=listing("range", metadata=b"?"))
    group.sync(member, {member.member_id: b""})
    refused = group.enter("a", "t", topics={"t": 1})
    text = f"{CANNOT} the embedded consumer protocol is malformed."
    assert (refused.error, refused.body.error_message) == (Error.GROUP_ID_NOT_FOUND, text)
