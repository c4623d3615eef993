"""Snapshots for release 0.1.0: the bytes that it wrote, and nothing is lost that it has."""

from typing import Any

import msgspec
import pytest
from hypothesis import given

from coordinator_logic import snapshot
from coordinator_logic.committed_offsets import Offsets
from coordinator_logic.group import Group
from coordinator_logic.group.part import GroupPart
from coordinator_logic.group.transactions import OpenTransaction
from coordinator_logic.groups import TYPES
from coordinator_logic.groups.conversions.format_4_snapshots import NotInFormat, encode_in_format_4
from tests.logic.strategies import values_of
from tests.logic.test_snapshot import KEPT, expected_of_format_7
from tests.support.parts import consumer_part


def without_what_came_later(group: Group) -> Group:
    """The group without the ids of topics at its offsets, and without what was matched with its patterns."""
    changes: dict[str, Any] = {"offsets": without_ids(group.offsets), "open_transactions": {}}
    for producer_id, each in group.open_transactions.items():
        changes["open_transactions"][producer_id] = OpenTransaction(each.producer_epoch, without_ids(each.offsets))
    consumer = consumer_part(group)
    if consumer is not None:
        changes["part"] = msgspec.structs.replace(consumer, matched={}, matching_until=0)
    return msgspec.structs.replace(group, **changes)


def without_ids(offsets: Offsets) -> Offsets:
    return {
        topic: {number: msgspec.structs.replace(each, topic_id="") for number, each in partitions.items()}
        for topic, partitions in offsets.items()
    }


def test_a_group_of_format_4_has_the_same_bytes_again() -> None:
    kept = bytes.fromhex((KEPT / "format-4.hex").read_text())
    assert encode_in_format_4(snapshot.decode(kept)) == kept


@pytest.mark.parametrize("group_type", TYPES)
def test_a_group_of_the_newest_format_lacks_ids_of_topics_and_matches_only(group_type: str) -> None:
    newest = snapshot.encode(expected_of_format_7(group_type))
    group = snapshot.decode(newest)
    encoded = encode_in_format_4(group)
    assert encoded[0] == {"classic": 1, "consumer": 4}[group_type]
    assert snapshot.decode(encoded) == without_what_came_later(expected_of_format_7(group_type))
    assert snapshot.encode(group) == newest, "the group itself is unchanged"


@given(values_of(Group))
def test_any_group_keeps_everything_else(group: Group) -> None:
    # The effect of a timer follows from its kind, of which these groups have any.
    group.timers, group.stored_offset_count = {}, None
    consumer = consumer_part(group)
    if consumer is not None:
        consumer.protocol_type = type(consumer)().protocol_type
    assert snapshot.decode(encode_in_format_4(group)) == without_what_came_later(group)


def test_a_group_of_a_later_type_is_refused() -> None:
    class LaterPart(GroupPart, array_like=True, dict=True, tag="later"):
        type_name = "later"

    with pytest.raises(NotInFormat, match="group g is a later group"):
        encode_in_format_4(Group("g", "0-0", LaterPart()))
