"""Items of a snapshot that stay encoded until they are needed."""

import msgspec
import pytest

from coordinator_logic.groups.consumer.members import (
    ConsumerMember,
    MemberOutline,
    decode_member,
    decode_outline,
    encode_member,
)
from coordinator_logic.stored_parts import ItemCodec, StoredItems, UnreadablePart

CODEC = ItemCodec(encode_member, decode_member, "members")


def stored(*members: ConsumerMember) -> StoredItems[ConsumerMember]:
    return StoredItems({member.member_id: encode_member(member) for member in members}, CODEC)


def test_an_outline_has_what_the_member_has_besides_its_partitions() -> None:
    member = ConsumerMember("a", "i", "r", "client", "host", 1, ("t",), "p", "range", 7, 6, assigned={"t": {0: 7}})
    outline = stored(member).outline("a", decode_outline)
    assert isinstance(outline, MemberOutline)
    fields = [name for name in ConsumerMember.__struct_fields__ if name not in ("assigned", "pending_revocation")]
    assert [getattr(outline, name) for name in fields] == [getattr(member, name) for name in fields]


def test_an_outline_of_a_member_that_was_changed_is_the_member() -> None:
    items = stored(ConsumerMember("a"))
    items["a"] = ConsumerMember("a", epoch=2)
    assert items.outline("a", decode_outline) == ConsumerMember("a", epoch=2)
    assert items.outline("b", decode_outline) is None


def test_only_items_that_were_set_are_encoded_again() -> None:
    # As an earlier release wrote it, without the last field.
    earlier = msgspec.msgpack.encode(msgspec.msgpack.decode(encode_member(ConsumerMember("a")))[:-1])
    items = StoredItems({"a": earlier, "b": encode_member(ConsumerMember("b"))}, CODEC)
    assert [member.epoch for member in items.values()] == [0, 0]
    items["b"] = ConsumerMember("b", epoch=3)
    items["c"] = ConsumerMember("c")
    assert items.for_snapshot() == {
        "a": earlier,
        "b": encode_member(ConsumerMember("b", epoch=3)),
        "c": encode_member(ConsumerMember("c")),
    }
    del items["c"]
    assert list(items.for_snapshot()) == ["a", "b"]


def test_a_damaged_item_is_unreadable_whichever_way_it_is_read() -> None:
    items = StoredItems({"a": b"\xff"}, CODEC)
    with pytest.raises(UnreadablePart, match="its members are damaged"):
        items.outline("a", decode_outline)
    with pytest.raises(UnreadablePart, match="its members are damaged"):
        items["a"]
