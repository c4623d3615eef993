"""Which of the coordinator's own topics the gateway keeps from whom."""

from collections.abc import Collection
from enum import Enum, auto

from streaming.contract.topics import TopicNames
from streaming.gateway.wire.api_keys import READING_APIS


class View(Enum):
    """How much of the internal topics an answer about topics shows."""

    WHOLE = auto()
    """All of them, to a principal that may use them."""
    BY_NAME = auto()
    """Those that the request names, as far as clients may read them; the others are refused."""
    BY_ID = auto()
    """Likewise, for a request that names topics by their ids."""
    NONE = auto()
    """None of them: the request asks for whatever topics there are."""


OFFSETS_TOPIC = "__consumer_offsets"
"""The topic in which the brokers' group coordinator keeps its groups."""


class InternalTopicRules:
    """What the gateway refuses to clients.

    No client may write, create, change or delete one of the topics, or read requests, responses and transactions, which
    hold everybody's offsets, metadata and answers. The other topics are for operators to read who name them, as far as
    the brokers' ACLs allow it. None of them is in a list of topics, since clients subscribe to what they find there.

    principals: those to which nothing is refused here.
    hides_offsets_topic: whether :data:`OFFSETS_TOPIC` is kept from clients as the requests are.
    """

    def __init__(
        self, names: TopicNames, principals: Collection[str] = (), *, hides_offsets_topic: bool = False
    ) -> None:
        brokers_topics = {OFFSETS_TOPIC} if hides_offsets_topic else set()
        self.unreadable = frozenset({names.requests, names.responses, names.transactions} | brokers_topics)
        self.all = names.all | brokers_topics
        self._principals = frozenset(principals)

    def may_use(self, principal: str) -> bool:
        """Whether a principal may use the topics as far as the brokers allow it."""
        return principal in self._principals

    def hides(self, principal: str, topic: str) -> bool:
        """Whether a principal may not even describe a topic."""
        return topic in self.unreadable and not self.may_use(principal)

    def guarded(self, api_key: int) -> frozenset[str]:
        """Return the names that a request of an API may not contain."""
        return self.unreadable if api_key in READING_APIS else self.all
