"""A topic partition, and the order in which Kafka's Java clients sort strings."""

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A partition of a topic. Sorts by topic, then by partition number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def java_order(text: str) -> bytes:
    """Return a sort key for the order of Java's ``String.compareTo``: by UTF-16 code unit.

    Python compares code points, which gives another order for characters outside the basic multilingual plane. Member
    ids begin with a client id and can contain such characters; leaders in all languages must sort them alike.
    """
    return text.encode("utf-16-be", "surrogatepass")
