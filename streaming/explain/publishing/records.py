"""The records of ``group-rebalances``."""

from collections.abc import Mapping

import msgspec

from streaming.contract.topics import MAX_ROW_BYTES
from streaming.explain.story.model import Rebalance
from streaming.explain.story.of_all_groups import GroupRebalance


class PublishedRebalance(Rebalance, frozen=True, kw_only=True):
    """A rebalance that has ended; the record's key is the group id.

    No two rebalances of a group have the same ``incarnation`` and ``sequence``, also if ``generation`` is null.

    Of several ``causes`` the first is the most probable; a certain one stands alone or first. In a consumer group
    (KIP-848), ``generation`` is the epoch.
    """

    group_id: str
    incarnation: str
    sequence: int
    journal_positions: dict[int, int]
    is_cut: bool = False


def published(told: GroupRebalance, positions: Mapping[int, int]) -> PublishedRebalance:
    """The record of a rebalance; ``positions`` are those up to which the journal has been read with its transaction."""
    fields = {name: getattr(told.rebalance, name) for name in told.rebalance.__struct_fields__}
    begin = told.rebalance.cause.evidence[-1]
    return PublishedRebalance(
        **fields,
        group_id=told.group_id,
        incarnation=begin.incarnation,
        sequence=begin.sequence,
        journal_positions=dict(positions),
    )


def encoded(record: PublishedRebalance, limit: int = MAX_ROW_BYTES) -> bytes:
    """The record's value. Beyond the limit, in bytes, it lacks its lists of members and most of the evidence."""
    value = msgspec.json.encode(record)
    if len(value) <= limit:
        return value
    causes = [msgspec.structs.replace(cause, evidence=cause.evidence[-1:]) for cause in record.causes]
    return msgspec.json.encode(
        msgspec.structs.replace(record, causes=causes, came=[], went=[], shares=[], waited_for=[], is_cut=True)
    )
