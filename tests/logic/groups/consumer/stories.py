"""Random stories of three consumers that share a group."""

from hypothesis import strategies as st

from tests.logic.groups.consumer.driver import DrivenConsumers, description, topic_id
from tests.support.parts import consumer_part

Action = tuple[str, str, object]
"""What happens, the member that does it, and a value that depends on what happens."""

_MEMBERS = st.sampled_from(["a", "b", "c"])
_FIELDS = st.sampled_from([("server_assignor", "range"), ("rack_id", "r"), ("instance_id", "i")])
_ACTIONS = st.one_of(
    st.tuples(st.just("join"), _MEMBERS, st.sampled_from([("t",), ("t", "u"), ("none",)])),
    st.tuples(st.just("pattern"), _MEMBERS, st.sampled_from(["t.*", "u.*"])),
    st.tuples(st.just("own"), _MEMBERS, st.sets(st.integers(0, 3))),
    st.tuples(st.just("host"), _MEMBERS, st.sampled_from(["/127.0.0.1", "/127.0.0.2"])),
    st.tuples(st.just("field"), _MEMBERS, _FIELDS),
    st.tuples(st.just("topics"), _MEMBERS, st.integers(3, 9)),
    st.tuples(st.just("described"), _MEMBERS, st.integers(3, 9)),
    st.tuples(st.just("leave"), _MEMBERS, st.none()),
    st.tuples(st.just("sleep"), _MEMBERS, st.sampled_from([100, 1_000, 11_000, 11_000, 50_000])),
)

STORIES = st.lists(_ACTIONS, max_size=25)


def play(group: DrivenConsumers, story: list[Action]) -> None:
    """Let three members join, and then play the actions; after each, the members follow the protocol."""
    for member in "abc":
        group.enter(member, "t", topics={"t": 4})
    _follow(group)
    _follow(group)
    for each in story:
        _act(group, *each)
        if group.exists:
            _follow(group)


def _act(group: DrivenConsumers, action: str, member: str, value: object) -> None:
    consumer = consumer_part(group.group) if group.exists else None
    known = None if consumer is None else consumer.members.get(member)
    epoch = 2 if known is None else max(known.epoch, 1)
    match action, value:
        case "join", tuple(names):
            group.enter(member, *names, topics={"t": 4, "u": 2})
        case "pattern", str(pattern):
            group.enter(member, subscribed_topic_regex=pattern, topics={"t": 4, "u": 2})
        case "own", set(numbers):
            group.beat(member, epoch, owned={topic_id("t"): numbers})
        case "field", tuple((name, field)):
            group.beat(member, epoch, **{name: field})
        case "host", str(host):
            group.beat(member, epoch, host=host)
        case "topics", int(count):
            group.beat(member, epoch, topics={"t": count})
        case "described", int(count):
            group.topics_described(description("t", count), description(f"t{count}", 1))
        case "leave", _:
            group.beat(member, -1)
        case "sleep", int(ms):
            group.sleep(ms)


def _follow(group: DrivenConsumers) -> None:
    """Let members send heartbeats that say nothing, before and after they have given up what they must."""
    for member_id, member in group.consumer.members.items():
        group.beat(member_id, group.consumer.epoch)
        group.beat(member_id, max(1, member.epoch))
    for member_id, member in group.consumer.members.items():
        group.beat(member_id, member.epoch, owned={each: set(held) for each, held in member.assigned.items()})
    for member_id, member in group.consumer.members.items():
        group.beat(member_id, member.epoch)
