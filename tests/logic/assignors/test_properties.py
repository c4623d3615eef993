"""Properties of every assignment, for random groups."""

from hypothesis import given
from hypothesis import strategies as st

from coordinator_logic.assignors import (
    BUILT_IN_ASSIGNORS,
    CooperativeStickyAssignor,
    GroupSubscription,
    TopicMetadata,
    assignor_by_name,
)
from coordinator_logic.assignors.sticky import AbstractStickyAssignor
from coordinator_logic.embedded_protocols import Subscription, TopicPartition

from .groups import (
    Assigned,
    DrivenGroup,
    as_sets,
    assert_balanced,
    assert_complete_and_valid,
    assert_no_swaps,
    subscribed_partitions,
)

TOPICS = [f"t{i}" for i in range(5)]
MEMBERS = [f"c{i}" for i in range(7)]

clusters = st.dictionaries(st.sampled_from(TOPICS), st.builds(TopicMetadata, st.integers(0, 7)), max_size=len(TOPICS))
member_ids = st.lists(st.sampled_from(MEMBERS), min_size=1, unique=True)
topic_lists = st.lists(st.sampled_from(TOPICS), unique=True)
sticky_names = st.sampled_from(["sticky", "cooperative-sticky"])


@st.composite
def groups(draw: st.DrawFn, assignor_name: str) -> DrivenGroup:
    """A new group; in half of the cases all members subscribe to the same topics."""
    group = DrivenGroup(assignor_name, draw(clusters))
    common = draw(st.none() | topic_lists)
    for member_id in draw(member_ids):
        group.join(member_id, draw(topic_lists) if common is None else common)
    return group


@st.composite
def changes(draw: st.DrawFn, group: DrivenGroup) -> None:
    """One change of the group: a member leaves, joins or resubscribes, or a topic changes."""
    change = draw(st.sampled_from(["leave", "join", "resubscribe", "topic"]))
    if change == "leave" and len(group.subscribed) > 1:
        group.leave(draw(st.sampled_from(sorted(group.subscribed))))
    elif change == "join":
        group.join("newcomer", draw(st.sampled_from(sorted(group.subscribed.values())) | topic_lists))
    elif change == "resubscribe":
        group.subscribed[draw(st.sampled_from(sorted(group.subscribed)))] = draw(topic_lists)
    else:
        group.topics[draw(st.sampled_from(TOPICS))] = TopicMetadata(draw(st.integers(0, 9)))


def in_racks(draw: st.DrawFn, topics: dict[str, TopicMetadata]) -> dict[str, TopicMetadata]:
    """The same topics with replicas in random racks."""
    racks = st.frozensets(st.sampled_from("abc"))
    return {topic: TopicMetadata(n, [draw(racks) for _ in range(n)]) for topic, (n, _) in topics.items()}


@st.composite
def claims(draw: st.DrawFn) -> tuple[dict[str, TopicMetadata], list[GroupSubscription]]:
    """Cooperative members with arbitrary claims: too many, conflicting, or for partitions that do not exist."""
    any_partition = st.builds(TopicPartition, st.sampled_from(TOPICS), st.integers(0, 8))
    common = draw(st.none() | topic_lists)
    members = [
        GroupSubscription(
            member_id,
            None,
            Subscription(
                draw(topic_lists) if common is None else common,
                None,
                draw(st.lists(any_partition, max_size=15)),
                draw(st.integers(-1, 3)),
            ),
        )
        for member_id in draw(member_ids)
    ]
    return draw(clusters), members


@given(st.data(), st.sampled_from(sorted(BUILT_IN_ASSIGNORS)))
def test_every_subscribed_partition_has_exactly_one_owner_that_subscribes_to_it(data: st.DataObject, name: str) -> None:
    group = data.draw(groups(name))
    assert_complete_and_valid(group.rebalance(), group.topics, group.subscriptions())


@given(st.data(), st.sampled_from(sorted(BUILT_IN_ASSIGNORS)))
def test_the_order_of_members_does_not_matter(data: st.DataObject, name: str) -> None:
    group = data.draw(groups(name))
    group.rebalance()
    data.draw(changes(group))
    members = group.subscriptions()
    shuffled = data.draw(st.permutations(members))
    assignor = assignor_by_name(name)
    expected = assignor.assign(group.topics, members)
    assert assignor.assign(group.topics, shuffled) == expected


@given(st.data())
def test_range_assigns_each_subscriber_of_a_topic_a_range_of_its_quota(data: st.DataObject) -> None:
    group = data.draw(groups("range"))
    assignment = group.rebalance()
    for topic, (count, _) in group.topics.items():
        consumers = [m for m, topics in group.subscribed.items() if topic in topics]
        for consumer in consumers:
            numbers = [tp.partition for tp in assignment[consumer] if tp.topic == topic]
            assert numbers == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else True
            assert count // len(consumers) <= len(numbers) <= -(-count // len(consumers))


@given(st.data())
def test_round_robin_is_balanced_when_subscriptions_are_equal(data: st.DataObject) -> None:
    group = DrivenGroup("roundrobin", data.draw(clusters))
    topics = data.draw(topic_lists)
    for member_id in data.draw(member_ids):
        group.join(member_id, topics)
    assert_balanced(group.rebalance(), group.subscriptions())


@given(st.data(), sticky_names)
def test_sticky_assignments_stay_complete_and_balanced_without_swaps_through_changes(
    data: st.DataObject, name: str
) -> None:
    group = data.draw(groups(name))
    group.rebalance()
    for _ in range(data.draw(st.integers(1, 4))):
        data.draw(changes(group))
        before = dict(group.owned)
        after = group.rebalance_until_settled(most_rounds=4)
        assert_complete_and_valid(after, group.topics, group.subscriptions())
        assert_balanced(after, group.subscriptions())
        assert_no_swaps(existing(before, group), after)


@given(st.data(), sticky_names)
def test_an_unbalanced_group_is_balanced_without_swaps(data: st.DataObject, name: str) -> None:
    group = data.draw(groups(name))
    owner = st.sampled_from([*group.subscribed, *[next(iter(group.subscribed))] * 6])
    before: Assigned = {member_id: [] for member_id in group.subscribed}
    for topic, (count, _) in group.topics.items():
        for partition in range(count):
            before[data.draw(owner)].append(TopicPartition(topic, partition))
    for member_id, owned in before.items():
        group.receive(member_id, owned, generation=0)
    after = group.rebalance_until_settled(most_rounds=4)
    assert_balanced(after, group.subscriptions())
    assert_no_swaps(before, after)


@given(st.data(), sticky_names)
def test_a_sticky_assignment_does_not_change_if_the_group_does_not(data: st.DataObject, name: str) -> None:
    group = data.draw(groups(name))
    before = as_sets(group.rebalance())
    assert as_sets(group.rebalance()) == before


@given(st.data(), sticky_names)
def test_remaining_members_keep_all_partitions_when_one_of_equal_members_leaves(data: st.DataObject, name: str) -> None:
    group = group_with_equal_subscriptions(data, name)
    leaver = data.draw(st.sampled_from(sorted(group.subscribed)))
    group.join("remaining", group.subscribed[leaver])
    before = group.rebalance_until_settled(most_rounds=4)
    group.leave(leaver)
    after = group.rebalance()
    assert all(set(before[m]) <= set(after[m]) for m in after)


@given(st.data(), sticky_names)
def test_existing_members_get_no_other_partitions_when_an_equal_member_joins(data: st.DataObject, name: str) -> None:
    group = group_with_equal_subscriptions(data, name)
    before = group.rebalance()
    group.join("newcomer", next(iter(group.subscribed.values())))
    after = group.rebalance_until_settled(most_rounds=4)
    assert all(set(after[m]) <= set(before[m]) for m in before)
    # No member lost more partitions than balance requires.
    assert len(after["newcomer"]) == min(len(owned) for owned in after.values())


@given(st.data())
def test_a_cooperative_rebalance_assigns_no_partition_that_another_member_owns(data: st.DataObject) -> None:
    group = data.draw(groups("cooperative-sticky"))
    group.rebalance()
    for _ in range(3):
        data.draw(changes(group))
        before = dict(group.owned)
        after = group.rebalance()
        owner_before = {tp: m for m, owned in before.items() for tp in owned}
        assert all(owner_before.get(tp, m) == m for m, owned in after.items() for tp in owned)


@given(claims())
def test_a_cooperative_rebalance_tolerates_arbitrary_claims(
    case: tuple[dict[str, TopicMetadata], list[GroupSubscription]],
) -> None:
    topics, members = case
    assignment = CooperativeStickyAssignor().assign(topics, members)
    assigned = [tp for owned in assignment.values() for tp in owned]
    claimed_by: dict[TopicPartition, set[str]] = {}
    for m in members:
        for tp in m.subscription.owned_partitions:
            claimed_by.setdefault(tp, set()).add(m.member_id)
    assert len(assigned) == len(set(assigned))
    for member_id, owned in assignment.items():
        assert all(member_id in claimed_by.get(tp, {member_id}) for tp in owned)
    unassigned = set(subscribed_partitions(topics, members)) - set(assigned)
    assert unassigned <= set(claimed_by)


@given(st.data(), claims(), sticky_names)
def test_racks_do_not_reduce_balance(
    data: st.DataObject, case: tuple[dict[str, TopicMetadata], list[GroupSubscription]], name: str
) -> None:
    without_racks, members = case
    topics = data.draw(st.composite(in_racks)(without_racks))
    group = DrivenGroup(name, topics)
    for m in members:
        group.join(m.member_id, m.subscription.topics, data.draw(st.sampled_from([None, *"abc"])))
        group.receive(m.member_id, m.subscription.owned_partitions, m.subscription.generation_id)
    assignor = assignor_by_name(name)
    assert isinstance(assignor, AbstractStickyAssignor)
    assignment = assignor.assign_partitions(topics, group.subscriptions()).assignment
    assert_complete_and_valid(assignment, topics, group.subscriptions())
    assert_balanced(assignment, group.subscriptions())


@given(claims(), sticky_names)
def test_a_group_with_arbitrary_claims_is_balanced_within_four_rebalances(
    case: tuple[dict[str, TopicMetadata], list[GroupSubscription]], name: str
) -> None:
    topics, members = case
    group = DrivenGroup(name, topics, generation=3)
    for m in members:
        group.join(m.member_id, m.subscription.topics)
        group.receive(m.member_id, m.subscription.owned_partitions, m.subscription.generation_id)
    settled = group.rebalance_until_settled(most_rounds=4)
    assert_complete_and_valid(settled, topics, group.subscriptions())
    assert_balanced(settled, group.subscriptions())


def group_with_equal_subscriptions(data: st.DataObject, name: str) -> DrivenGroup:
    group = DrivenGroup(name, data.draw(clusters))
    topics = data.draw(topic_lists)
    for member_id in data.draw(member_ids):
        group.join(member_id, topics)
    return group


def existing(owned: Assigned, group: DrivenGroup) -> Assigned:
    """The partitions of an assignment that still exist after topics have changed."""
    return {
        m: [tp for tp in partitions if tp.topic in group.topics and tp.partition < group.topics[tp.topic].partitions]
        for m, partitions in owned.items()
    }
