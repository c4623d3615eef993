"""A partition of a topic, and the order in which Kafka's clients sort names."""

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """One partition of one topic. Compares by topic, then by partition number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def java_order(text: str) -> bytes:
    """A sort key that orders strings as Java's ``String.compareTo`` does: by UTF-16 code unit.

    Python compares by code point, which differs as soon as one name has a character outside the basic
    plane. Member ids begin with a client id, and that may be anything; two leaders written in different
    languages must still agree.
    """
    return text.encode("utf-16-be", "surrogatepass")
