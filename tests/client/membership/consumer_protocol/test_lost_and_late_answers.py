"""Whatever is late or lost between members and coordinator, no partition has two owners, and the group settles."""

from hypothesis import given, note
from hypothesis import strategies as st

from tests.client.membership.consumer_protocol.simulation import SimulatedGroup

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
