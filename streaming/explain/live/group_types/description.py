"""What describes groups of one type, and words that all types share."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from coordinator_logic.embedded_protocols import TopicPartition
from coordinator_logic.messages import DescribedConsumerGroup, DescribedGroup
from streaming.client import CoordinatorClient

AnyDescribedGroup = DescribedGroup | DescribedConsumerGroup

NOTHING = "-"


class MemberNow(NamedTuple):
    """A member. ``assignment`` is its partitions, a line for each topic; ``-`` if it has none.

    In a consumer group, lines about what it revokes, gets and waits for follow, and ``standing`` is its member epoch,
    with the protocol if that is the classic one.
    """

    member_id: str
    instance_id: str
    client_id: str
    client_host: str
    assignment: str
    standing: str = ""


class TypeDescription(Protocol):
    """Describes groups of one type, from the answers of the coordinator."""

    ANSWER: type[Any]
    """The type of such an answer."""

    def ask(self, client: CoordinatorClient, group_ids: Sequence[str]) -> Sequence[AnyDescribedGroup]:
        """The answers for groups. Raises CoordinatorError if the coordinator does not answer."""

    def protocol(self, group: Any) -> str:
        """How the members of a group share the partitions."""

    def members(self, group: Any) -> list[MemberNow]:
        """The members of a group."""


def by_topic(places: Iterable[TopicPartition]) -> list[str]:
    """A line for each topic: ``orders: 0, 1``."""
    by_topic: dict[str, list[str]] = {}
    for topic, number in sorted(places):
        by_topic.setdefault(topic, []).append(str(number))
    return [f"{topic}: {', '.join(numbers)}" for topic, numbers in by_topic.items()]
