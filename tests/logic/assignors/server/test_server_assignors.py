"""The server-side assignors: the examples of Kafka's unit tests, and properties."""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_logic.assignors.server import SERVER_ASSIGNORS, Partitions, ServerAssignor, SubscribedMember

uniform = SERVER_ASSIGNORS["uniform"]
server_range = SERVER_ASSIGNORS["range"]


def member(
    member_id: str, topics: str, previous: Partitions | None = None, instance: str | None = None
) -> SubscribedMember:
    return SubscribedMember(member_id, instance, frozenset(topics.split()), previous or {})


def some(**partitions: set[int]) -> Partitions:
    return {topic: frozenset(numbers) for topic, numbers in partitions.items()}


def sizes(targets: dict[str, Partitions]) -> dict[str, int]:
    return {member_id: sum(map(len, by_topic.values())) for member_id, by_topic in targets.items()}


def placed(targets: dict[str, Partitions]) -> Counter[tuple[str, int]]:
    return Counter(
        (topic, partition)
        for by_topic in targets.values()
        for topic, partitions in by_topic.items()
        for partition in partitions
    )


def test_uniform_is_the_default() -> None:
    assert next(iter(SERVER_ASSIGNORS)) == "uniform"


def test_uniform_without_members_or_topics_assigns_nothing() -> None:
    assert uniform([], {"t": 3}) == {}
    assert uniform([member("a", "gone"), member("b", "gone")], {}) == {"a": {}, "b": {}}


def test_uniform_with_more_members_than_partitions_leaves_one_without() -> None:
    assert sizes(uniform([member(m, "t") for m in "abc"], {"t": 2})) == {"a": 1, "b": 1, "c": 0}


def test_uniform_keeps_what_it_can_when_topics_grow() -> None:
    before = [member("a", "t1 t2", some(t1={0, 1}, t2={0, 1})), member("b", "t1 t2", some(t1={2}, t2={2}))]
    targets = uniform(before, {"t1": 3, "t2": 3})
    assert targets["a"] == some(t1={0, 1}, t2={0})
    assert targets["b"] == some(t1={2}, t2={1, 2})


def test_uniform_leaves_the_extra_partition_where_it_is() -> None:
    before = [member("a", "t", some(t={0})), member("b", "t", some(t={1, 2}))]
    assert uniform(before, {"t": 3}) == {"a": some(t={0}), "b": some(t={1, 2})}


def test_uniform_drops_partitions_of_unsubscribed_and_deleted_topics() -> None:
    before = [member("a", "t", some(t={0, 9}, u={0}, gone={0})), member("b", "t")]
    assert uniform(before, {"t": 2, "u": 1}) == {"a": some(t={0}), "b": some(t={1})}


def test_uniform_levels_members_with_different_subscriptions() -> None:
    before = [member("a", "t", some(t=set(range(6)))), member("b", "t u", some(u={0, 1}))]
    targets = uniform(before, {"t": 6, "u": 2})
    assert sizes(targets) == {"a": 4, "b": 4}
    assert targets["a"]["t"] <= before[0].previous["t"]


def test_range_gives_static_members_their_place_by_instance_id() -> None:
    members = [member("x", "t u"), member("b", "t u", instance="2"), member("c", "t u", instance="1")]
    targets = server_range(members, {"t": 4, "u": 4})
    assert targets == {
        "c": some(t={0, 1}, u={0, 1}),
        "b": some(t={2}, u={2}),
        "x": some(t={3}, u={3}),
    }


COUNTS = st.dictionaries(st.sampled_from("tuvw"), st.integers(1, 12), min_size=1)
SUBSCRIPTIONS = st.lists(st.sets(st.sampled_from("tuvwx")), min_size=1, max_size=6)


def members_of(
    subscriptions: Sequence[set[str]], targets: dict[str, Partitions] | None = None
) -> list[SubscribedMember]:
    return [
        SubscribedMember(f"m{index}", None, frozenset(topics), (targets or {}).get(f"m{index}", {}))
        for index, topics in enumerate(subscriptions)
    ]


@pytest.mark.parametrize("assign", SERVER_ASSIGNORS.values(), ids=SERVER_ASSIGNORS.keys())
@given(counts=COUNTS, first=SUBSCRIPTIONS, second=SUBSCRIPTIONS)
def test_every_subscribed_partition_has_one_subscriber_as_its_owner(
    assign: ServerAssignor, counts: dict[str, int], first: list[set[str]], second: list[set[str]]
) -> None:
    targets = assign(members_of(second, assign(members_of(first), counts)), counts)
    subscribed = set().union(*second) & counts.keys()
    assert placed(targets) == Counter((topic, p) for topic in subscribed for p in range(counts[topic]))
    assert all(set(targets[f"m{index}"]) <= topics for index, topics in enumerate(second))


@given(counts=COUNTS, before=st.integers(1, 6), after=st.integers(1, 6))
def test_uniform_moves_no_more_than_balance_needs(counts: dict[str, int], before: int, after: int) -> None:
    topics = set(counts)
    first = uniform(members_of([topics] * before), counts)
    targets = uniform(members_of([topics] * after, first), counts)
    assert max(sizes(targets).values()) - min(sizes(targets).values()) <= 1
    kept = sum(
        len(partitions & first.get(member_id, {}).get(topic, frozenset()))
        for member_id, by_topic in targets.items()
        for topic, partitions in by_topic.items()
    )
    survivors = sorted(sizes(first).get(f"m{index}", 0) for index in range(after))
    allowed = sorted(sizes(targets).values())
    assert kept == sum(map(min, survivors, allowed))


@given(counts=COUNTS, subscriptions=SUBSCRIPTIONS)
def test_uniform_changes_nothing_when_nothing_changed(counts: dict[str, int], subscriptions: list[set[str]]) -> None:
    first = uniform(members_of(subscriptions), counts)
    second = uniform(members_of(subscriptions, first), counts)
    assert uniform(list(reversed(members_of(subscriptions, first))), counts) == second
    if len({frozenset(topics & counts.keys()) for topics in subscriptions}) == 1:
        assert second == first
