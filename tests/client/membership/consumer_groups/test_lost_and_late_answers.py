"""Whatever is late or lost between members and coordinator, no partition has two owners, and the group settles."""

from hypothesis import given, note
from hypothesis import strategies as st

from coordinator_logic.errors import Error
from tests.client.membership.consumer_groups.simulation import SimulatedGroup

MEMBERS = 3
ACTIONS = ["poll", "beat", "later", "later", "receive", "read", "read", "time out", "leave", "grow"]

actions = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, MEMBERS - 1)), max_size=60)


def act(group: SimulatedGroup, action: str, index: int) -> None:
    member = group.members[index]
    match action:
        case "poll":
            member.poll()
        case "beat":
            member.beat()
        case "receive":
            member.receive()
        case "time out":
            member.time_out()
        case "leave":
            member.leave()
        case "read":
            group.read()
        case "later":
            group.sleep(0.1)
            member.beat()
        case "grow" if group.partitions < 9:
            group.grow(group.partitions + 1)
    group.check()


@given(actions)
def test_no_partition_has_two_owners_and_the_group_settles(script: list[tuple[str, int]]) -> None:
    group = SimulatedGroup(4, group_consumer_heartbeat_interval_ms=100)
    for index in range(MEMBERS):
        group.new(f"member-{index}")
    group.run(seconds=10.0)
    assert group.is_settled()
    for action, index in script:
        act(group, action, index)
    group.run(seconds=10.0)
    note([(member.state.phase, member.owned) for member in group.members])
    assert group.is_settled()
    assert not any(member.failures for member in group.members)


def test_a_late_answer_does_not_give_what_the_coordinator_has_given_to_another_since() -> None:
    group = SimulatedGroup(4)
    first, _, third = (group.new(name) for name in "abc")
    group.members.remove(third)
    group.run(seconds=10.0)
    owned = first.owned
    group.sleep(5)
    first.beat()
    group.sleep(5)
    first.beat()
    group.read()
    group.grow(5)
    group.driven.topics_described(*group.subscription.topics.values())
    group.read()
    assert first.answers[-1][1].assignment is not None, "the second heartbeat's answer assigns the new partition"
    first.time_out()

    group.members.append(third)
    third.exchange()
    group.sleep(0.2)
    first.beat()
    group.read()
    group.sleep(5)
    third.exchange()
    assert third.owned == [4], "the first member has not listed it"

    assert first.receive() is Error.NONE
    first.poll()
    assert first.owned == owned
    group.run(seconds=10.0)
    assert group.is_settled()
