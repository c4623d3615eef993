"""Built-in assignors by name, and the common rebalance protocol of several assignors."""

import pytest

from coordinator_logic.assignors import (
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


def test_every_consumer_has_its_own_assignor_instance() -> None:
    assert assignor_by_name("cooperative-sticky") is not assignor_by_name("cooperative-sticky")


def test_an_unknown_name_is_refused_and_the_error_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="'rnage'; the built-in assignors are range, roundrobin"):
        assignor_by_name("rnage")


@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky"])
def test_assignors_are_eager_except_cooperative_sticky(name: str) -> None:
    assert protocol_of(name) is RebalanceProtocol.EAGER


@pytest.mark.parametrize("name", ["range", "roundrobin"])
def test_stateless_assignors_have_no_user_data(name: str) -> None:
    assert assignor_by_name(name).subscription_user_data() is None


def test_cooperative_sticky_is_cooperative() -> None:
    assert protocol_of("cooperative-sticky") is RebalanceProtocol.COOPERATIVE


def test_a_consumer_with_one_eager_assignor_is_eager() -> None:
    assert protocol_of("cooperative-sticky", "range") is RebalanceProtocol.EAGER


def test_assignors_without_a_common_protocol_are_refused() -> None:
    class OnlyCooperative(CooperativeStickyAssignor):
        name = "only-cooperative"
        supported_protocols = frozenset({RebalanceProtocol.COOPERATIVE})

    with pytest.raises(ValueError, match="no rebalance protocol in common"):
        common_rebalance_protocol([OnlyCooperative(), assignor_by_name("range")])
    with pytest.raises(ValueError, match="no rebalance protocol in common"):
        common_rebalance_protocol([])
