"""Every type of group that a client can describe has a table of members."""

from coordinator_logic.messages import DescribedConsumerGroup, DescribedGroup
from streaming.cli.group_types import MEMBER_TABLES
from streaming.client.group_types import DESCRIBED_BY, type_of


def test_every_type_that_can_be_described_can_be_printed() -> None:
    assert MEMBER_TABLES.keys() == DESCRIBED_BY.keys()


def test_a_described_group_has_the_type_of_its_api() -> None:
    assert type_of(DescribedGroup("billing")) == "classic"
    assert type_of(DescribedConsumerGroup("billing")) == "consumer"
