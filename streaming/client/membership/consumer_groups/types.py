"""The public types of a member of a consumer group (KIP-848): what it subscribes to, and its callbacks."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from coordinator_logic.embedded_protocols import TopicPartition
from coordinator_logic.messages import TopicDescription


@dataclass(frozen=True)
class TopicSubscription:
    """What a member subscribes to, and what it knows of these topics.

    names: the topics by name. pattern: a regular expression in RE2's syntax, which the coordinator matches against the
        whole names of topics; empty for none.
    topics: the existing topics with these names, and those that the pattern matches and the member may describe, by
        name. The coordinator sees no cluster, so it assigns the partitions of topics that members describe.
    """

    names: frozenset[str] = frozenset()
    pattern: str = ""
    topics: Mapping[str, TopicDescription] = field(default_factory=dict)

    @staticmethod
    def of(
        names: Iterable[str] = (), pattern: str = "", topics: Iterable[TopicDescription] = ()
    ) -> "TopicSubscription":
        """A subscription to these names and this pattern, with descriptions of existing topics."""
        return TopicSubscription(frozenset(names), pattern, {topic.name: topic for topic in topics})


class PartitionCallbacks(ABC):
    """The application's part of a member of a consumer group. ``poll``, ``leave`` and ``close`` call its methods.

    If a method raises an exception, its caller raises it. The member goes on as if the method had returned.
    """

    @abstractmethod
    def subscription(self) -> TopicSubscription:
        """Return what the member subscribes to. Every ``poll`` asks; the next heartbeat reports a change."""

    @abstractmethod
    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        """Called at the end of every change of the assignment with the added partitions, which may be none."""

    @abstractmethod
    def on_partitions_revoked(self, partitions: Sequence[TopicPartition], *, leaving: bool) -> None:
        """Called before the member gives up partitions, or all of them since it leaves (``leaving``).

        It still owns them: no other member gets them before this method has returned.
        """

    @abstractmethod
    def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """Called after the member was removed or fenced: other members may own these partitions already."""

    def on_unknown_topics(self) -> None:  # noqa: B027
        """Called when partitions are assigned of topics that :meth:`subscription` does not describe.

        The member gets them once it does.
        """
