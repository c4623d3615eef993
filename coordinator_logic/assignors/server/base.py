"""What every server-side assignor takes and returns."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

Partitions = dict[str, frozenset[int]]
"""Partition numbers by topic id, without empty sets."""


class SubscribedMember(NamedTuple):
    """A member as an assignor sees it. ``previous`` is the target assignment that it had so far."""

    member_id: str
    group_instance_id: str | None
    topic_ids: frozenset[str]
    previous: Partitions


ServerAssignor = Callable[[Sequence[SubscribedMember], Mapping[str, int]], dict[str, Partitions]]
"""Computes the target assignment of every member, by member id.

The second argument is the number of partitions of each topic, by topic id. Subscribed topics that are not in it are
ignored. The result depends on neither the order of the members nor that of the topics.
"""
