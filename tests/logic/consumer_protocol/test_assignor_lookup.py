"""Finding assignors by their protocol names, and what a consumer does with a list of them."""

import pytest

from coordinator_logic.consumer_protocol.assignors import (
    BUILT_IN_ASSIGNORS,
    CooperativeStickyAssignor,
    RebalanceProtocol,
    assignor_by_name,
    common_rebalance_protocol,
)


def protocol_of(*names: str) -> RebalanceProtocol:
    return common_rebalance_protocol(assignor_by_name(name) for name in names)


def test_kafkas_four_assignors_are_built_in() -> None:
    assert list(BUILT_IN_ASSIGNORS) == ["range", "roundrobin", "sticky", "cooperative-sticky"]
    assert all(assignor_by_name(name).name == name for name in BUILT_IN_ASSIGNORS)


def test_every_consumer_gets_an_assignor_of_its_own() -> None:
    assert assignor_by_name("cooperative-sticky") is not assignor_by_name("cooperative-sticky")


def test_an_unknown_name_is_refused_and_the_known_ones_are_named() -> None:
    with pytest.raises(ValueError, match="'rnage'; there are range, roundrobin"):
        assignor_by_name("rnage")


@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky"])
def test_the_others_make_members_give_everything_up_before_they_join(name: str) -> None:
    assert protocol_of(name) is RebalanceProtocol.EAGER


@pytest.mark.parametrize("name", ["range", "roundrobin"])
def test_stateless_assignors_have_nothing_to_report(name: str) -> None:
    assert assignor_by_name(name).subscription_user_data() is None


def test_cooperative_sticky_alone_lets_members_keep_their_partitions_while_they_join() -> None:
    assert protocol_of("cooperative-sticky") is RebalanceProtocol.COOPERATIVE


def test_a_consumer_with_one_eager_assignor_is_eager_until_it_is_dropped_from_the_list() -> None:
    assert protocol_of("cooperative-sticky", "range") is RebalanceProtocol.EAGER


def test_assignors_without_a_common_protocol_are_refused() -> None:
    class OnlyCooperative(CooperativeStickyAssignor):
        name = "only-cooperative"
        supported_protocols = frozenset({RebalanceProtocol.COOPERATIVE})

    with pytest.raises(ValueError, match="no rebalance protocol in common"):
        common_rebalance_protocol([OnlyCooperative(), assignor_by_name("range")])
    with pytest.raises(ValueError, match="no rebalance protocol in common"):
        common_rebalance_protocol([])
