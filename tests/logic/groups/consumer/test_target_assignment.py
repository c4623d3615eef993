"""The target assignment: subscriptions by name and pattern, the vote for an assignor, and stickiness over changes."""

import pytest

from coordinator_logic.assignors.server import SERVER_ASSIGNORS, Partitions
from coordinator_logic.groups.consumer.members import ConsumerMember
from coordinator_logic.groups.consumer.target_assignment import (
    Subscriptions,
    Topic,
    compute_targets,
    preferred_assignor,
)

TOPICS = {"orders": Topic("id-o", 2), "payments": Topic("id-p", 1)}
UNIFORM = SERVER_ASSIGNORS["uniform"]


def subscriber(member_id: str, *names: str, pattern: str = "") -> ConsumerMember:
    return ConsumerMember(member_id, subscribed_topic_names=tuple(sorted(names)), subscribed_topic_regex=pattern)


def some(partitions: dict[str, set[int]]) -> Partitions:
    return {topic_id: frozenset(numbers) for topic_id, numbers in partitions.items()}


def test_a_pattern_adds_to_the_names_and_matches_nothing_until_it_is_resolved() -> None:
    member = subscriber("a", "orders", "gone", pattern="pay.*")
    assert Subscriptions(TOPICS).topics_of(member) == [TOPICS["orders"]]
    resolved = Subscriptions(TOPICS, {"pay.*": frozenset({"payments", "deleted"})})
    assert resolved.topics_of(member) == [TOPICS["orders"], TOPICS["payments"]]


@pytest.mark.parametrize(
    ("votes", "winner"),
    [
        ([], "uniform"),
        ([None, None, "range"], "range"),
        (["range", "uniform"], "uniform"),
        (["range", "range", "uniform"], "range"),
        (["removed", "removed", "range"], "range"),
    ],
)
def test_the_assignor_that_most_members_ask_for_runs(votes: list[str | None], winner: str) -> None:
    members = [ConsumerMember(f"m{index}", server_assignor=vote) for index, vote in enumerate(votes)]
    assert preferred_assignor(members, ["uniform", "range"]) == winner


def test_a_new_member_takes_only_what_balance_gives_it() -> None:
    previous = {"a": some({"id-o": {0, 1}, "id-p": {0}})}
    members = [subscriber("a", "orders", "payments"), subscriber("b", "orders", "payments")]
    targets = compute_targets(members, previous, Subscriptions(TOPICS), UNIFORM)
    assert targets == {"a": some({"id-o": {0, 1}}), "b": some({"id-p": {0}})}


def test_a_topic_that_was_created_again_is_assigned_under_its_new_id() -> None:
    again = {"orders": Topic("id-new", 2)}
    targets = compute_targets([subscriber("a", "orders")], {"a": some({"id-o": {0}})}, Subscriptions(again), UNIFORM)
    assert targets == {"a": some({"id-new": {0, 1}})}
