import pytest

from coordinator_logic.groups.classic.data import ClassicGroup
from coordinator_logic.groups.classic.member import Member
from coordinator_logic.groups.classic.rebalance import select_protocol
from coordinator_logic.messages import Protocol
from coordinator_logic.states import State
from tests.logic.driver import Driven, listing


def group_of(*preferences: list[str]) -> ClassicGroup:
    group = ClassicGroup(State.STABLE, protocol_type="consumer", leader="member-0")
    for i, names in enumerate(preferences):
        protocols = [Protocol(name, b"") for name in names]
        group.members[f"member-{i}"] = Member(f"member-{i}", None, "c", "h", 10, 10, protocols)
    return group


def test_the_protocol_with_the_most_votes_wins() -> None:
    tie = group_of(["range", "roundrobin"], ["roundrobin", "range"])
    assert select_protocol(tie) in {"range", "roundrobin"}
    decided = group_of(["range", "roundrobin"], ["roundrobin", "range"], ["roundrobin", "range"])
    assert select_protocol(decided) == "roundrobin"


def test_only_a_protocol_that_all_members_list_can_win() -> None:
    assert select_protocol(group_of(["range", "roundrobin"], ["roundrobin", "foo"])) == "roundrobin"


def test_a_member_votes_for_its_first_protocol_that_all_members_support() -> None:
    assert select_protocol(group_of(["a", "b", "c"], ["c", "b"], ["b", "c"])) == "b"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("uniform", "sticky"),
        ("sticky", "range"),
        ("range", "roundrobin"),
        ("roundrobin", "cooperative-sticky"),
    ],
)
def test_a_tie_goes_to_the_protocol_that_a_broker_chooses(first: str, second: str) -> None:
    assert select_protocol(group_of([first, second], [second, first])) == first
    assert select_protocol(group_of([second, first], [first, second])) == first


@pytest.mark.parametrize("preferences", [[["range"], ["roundrobin"]], []])
def test_a_vote_without_a_protocol_in_common_or_without_members_is_a_defect(preferences: list[list[str]]) -> None:
    with pytest.raises(AssertionError, match="no protocol in common"):
        select_protocol(group_of(*preferences))


def test_an_empty_group_supports_any_type_and_at_least_one_protocol() -> None:
    group = ClassicGroup(protocol_type="consumer")
    assert group.supports("connect", listing("default"))
    assert not group.supports("", listing("default"))
    assert not group.supports("connect", [])


def test_a_group_supports_protocols_that_all_its_members_support() -> None:
    group = group_of(["range", "roundrobin"])
    assert group.supports("consumer", listing("roundrobin", "foo"))
    assert group.supports("consumer", listing("range", "bar"))
    assert not group.supports("consumer", listing("foo", "bar"))
    assert not group.supports("connect", listing("range"))

    group = group_of(["range", "roundrobin"], ["roundrobin", "foo"])
    assert group.supports("consumer", listing("roundrobin", "foo"))
    assert not group.supports("consumer", listing("range", "foo")), "neither is listed by both"


def test_protocols_are_the_same_only_with_the_same_names_bytes_and_order() -> None:
    member = group_of(["range", "roundrobin"]).members["member-0"]
    assert member.lists_same_protocols(listing("range", "roundrobin", metadata=b""))
    assert not member.lists_same_protocols(listing("roundrobin", "range", metadata=b""))
    assert not member.lists_same_protocols(listing("range", "roundrobin", metadata=b"x"))
    assert not member.lists_same_protocols(listing("range", metadata=b""))
    assert not member.lists_same_protocols(listing("range", "roundrobin", "foo", metadata=b""))


def test_the_leader_sees_each_members_metadata_for_the_protocol_that_won(driven: Driven) -> None:
    protocols = [*listing("roundrobin", metadata=b"1r"), *listing("range", metadata=b"1a")]
    leader = driven.join_new("c1", protocols=protocols)
    protocols = [*listing("range", metadata=b"2a")]
    follower = driven.join_new("c2", protocols=protocols)
    driven.sleep(6_000)
    assert leader.body.protocol_name == follower.body.protocol_name == "range"
    assert [(m.member_id, m.metadata) for m in leader.body.members] == [
        (leader.body.member_id, b"1a"),
        (follower.body.member_id, b"2a"),
    ]
    assert follower.body.members == []
