"""Snapshots: every format ever written can be read; unreadable bytes raise with the reason."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import pytest
from msgspec.inspect import StructType, Type, multi_type_info

from coordinator_logic import snapshot
from coordinator_logic.committed_offsets import CommittedOffset, StoredOffsets, offset_count
from coordinator_logic.committed_offsets.partitions import encode_topic
from coordinator_logic.events import ReplyAddress
from coordinator_logic.group import Group
from coordinator_logic.group.part import PARTS
from coordinator_logic.group.timer import HEARTBEAT, Effect, Timer
from coordinator_logic.group.transactions import OpenTransaction
from coordinator_logic.groups import TYPES
from coordinator_logic.groups.classic.data import ClassicGroup
from coordinator_logic.groups.classic.member import Member
from coordinator_logic.groups.classic.timers import INITIAL_JOIN, SYNC
from coordinator_logic.groups.consumer.data import ConsumerGroup, MatchedTopics, ResolvedPattern
from coordinator_logic.groups.consumer.members import ClassicMembership, ConsumerMember, MemberOutline, MemberState
from coordinator_logic.groups.consumer.target_assignment import Topic
from coordinator_logic.groups.consumer.timers import REVOCATION
from coordinator_logic.messages import (
    Protocol,
)
from coordinator_logic.states import State
from coordinator_logic.stored_parts import UnreadablePart
from tests.support.parts import classic, consumer_group, consumer_part

KEPT = Path(__file__).parent / "snapshots"
FIRST_FORMAT_OF_ANY_TYPE = 5
TOPIC_ID = "kQXTr5ZaQ4aTOGxdwzcvBw"


def expected_of_format_1() -> Group:
    """The group in the kept snapshot of format 1: every field has a value of its own."""
    dynamic = Member(
        "client-1",
        None,
        "client",
        "/10.0.0.1",
        60_000,
        10_000,
        [Protocol("range", b"\x00\x01")],
        assignment=b"\x02",
        is_new=False,
        parked_join=ReplyAddress("JoinGroup", 9, "join-1", 3, 5_000),
    )
    static = Member(
        "instance-1",
        "instance",
        "",
        "/10.0.0.2",
        300_000,
        45_000,
        [Protocol("range", b""), Protocol("sticky", b"\xff")],
        is_new=True,
        parked_sync=ReplyAddress("SyncGroup", 5, "sync-1", 0, 6_000),
    )
    return Group(
        group_id="größe",
        incarnation="2-17",
        part=ClassicGroup(
            state=State.PREPARING_REBALANCE,
            previous_state=State.STABLE,
            state_timestamp=1_700_000_000_001,
            generation=7,
            protocol_type="consumer",
            protocol_name="range",
            leader="client-1",
            members={"client-1": dynamic, "instance-1": static},
            pending_joins={"client-2": None},
            pending_syncs={"instance-1": None},
            new_member_added=True,
        ),
        offsets={
            "topic": {
                0: CommittedOffset(2**62, 3, "metadata", 1_700_000_000_002, 1_700_000_009_999),
                5: CommittedOffset(0, None, "", 1_700_000_000_003, None),
            }
        },
        sequence=42,
        clock=1_700_000_000_004,
        timers={
            "heartbeat-client-1": Timer(HEARTBEAT, 1_700_000_000_000, 10_000, "client-1"),
            "join": Timer(INITIAL_JOIN, 1_700_000_000_000, 3_000, remaining_ms=57_000, effect=Effect.ENDS_DELAY),
            "sync": Timer(SYNC, 1_700_000_000_000, 300_000, generation=7),
        },
    )


def test_a_snapshot_of_format_1_can_be_read() -> None:
    kept = bytes.fromhex((KEPT / "format-1.hex").read_text())
    assert kept[0] == 1
    assert snapshot.decode(kept) == expected_of_format_1()


def expected_of_format_2() -> Group:
    """The group in the kept snapshot of format 2: every field of a consumer group has a value of its own."""
    newer = ConsumerMember(
        *("m-1", "instance", "rack", "client", "/10.0.0.1", 60_000, ("a", "b"), "t.*", "range"),
        *(7, 6, MemberState.UNREVOKED_PARTITIONS, {"id-a": {0: 5, 1: 7}}, {"id-b": {2: 4}}),
    )
    classic = ClassicMembership(10_000, (Protocol("range", b"\x00\x01"),))
    older = ConsumerMember("m-2", subscribed_topic_names=("a",), epoch=7, previous_epoch=7, classic=classic)
    return Group(
        group_id="größe",
        incarnation="2-17",
        timers={"revocation-m-1": Timer(REVOCATION, 1_700_000_000_000, 60_000, "m-1", 7)},
        part=ConsumerGroup(
            state=State.ASSIGNING,
            previous_state=State.STABLE,
            generation=8,
            target_epoch=7,
            target_at=1_700_000_000_005,
            metadata_hash="00ff",
            members={"m-1": newer, "m-2": older},
            targets={"m-1": {"id-a": [0, 1]}, "m-2": {}},
            topics={"a": Topic("id-a", 2), "b": Topic("id-b", 3)},
            patterns={"t.*": ResolvedPattern(("t1", "t2"), 1_700_000_000_006)},
            refresh_requested=False,
            has_new_topics=True,
        ),
    )


def test_a_snapshot_of_format_2_can_be_read_and_goes_on_in_the_newest() -> None:
    kept = bytes.fromhex((KEPT / "format-2.hex").read_text())
    assert kept[0] == 2
    group = snapshot.decode(kept)
    assert group == expected_of_format_2()
    assert snapshot.encode(group) == snapshot.encode(expected_of_format_2())


def expected_of_format_3() -> Group:
    """The group in the kept snapshots of formats 3 and 4: as in format 2, with two more fields."""
    group = expected_of_format_2()
    consumer_group(group).has_unresolved_patterns = True
    group.configs = {"consumer.session.timeout.ms": 50_000}
    return group


def test_a_snapshot_of_format_3_can_be_read_and_goes_on_in_the_newest() -> None:
    kept = bytes.fromhex((KEPT / "format-3.hex").read_text())
    assert kept[0] == 3
    group = snapshot.decode(kept)
    assert group == expected_of_format_3()
    assert snapshot.encode(group) == snapshot.encode(expected_of_format_3())


def test_a_damaged_member_of_format_3_makes_the_snapshot_unreadable() -> None:
    kept = bytes.fromhex((KEPT / "format-3.hex").read_text())
    damaged = kept.replace(b"\xa3m-2", b"\xc4\x02-2", 2).replace(b"\xc4\x02-2", b"\xa3m-2", 1)
    with pytest.raises(snapshot.UnreadableSnapshot, match="the snapshot is damaged"):
        snapshot.decode(damaged)


def test_a_snapshot_of_format_4_can_be_read() -> None:
    kept = bytes.fromhex((KEPT / "format-4.hex").read_text())
    assert kept[0] == 4
    assert snapshot.decode(kept) == expected_of_format_3()
    assert snapshot.encode(snapshot.decode(kept)) == snapshot.encode(expected_of_format_3())


def test_unused_members_are_passed_on_unmodified_and_changed_ones_are_encoded_again() -> None:
    encoded = snapshot.encode(expected_of_format_3())
    group = snapshot.decode(encoded)
    assert snapshot.encode(group) == encoded
    changed = msgspec.structs.replace(consumer_group(group).members["m-1"], epoch=9)
    consumer_group(group).put(changed)
    del consumer_group(group).targets["m-2"]
    consumer_group(group).targets["m-3"] = {"id-b": [2]}
    again = consumer_group(snapshot.decode(snapshot.encode(group)))
    assert list(again.members) == ["m-1", "m-2"], "the order of members is kept"
    assert again.members["m-1"] == changed
    assert again.targets == {"m-1": {"id-a": [0, 1]}, "m-3": {"id-b": [2]}}


def test_damaged_members_raise_when_they_are_used() -> None:
    encoded = snapshot.encode(expected_of_format_3())
    group = snapshot.decode(encoded.replace(b"\xa3m-2", b"\xc4\x02-2", 2).replace(b"\xc4\x02-2", b"\xa3m-2", 1))
    assert len(consumer_group(group).members) == 2
    with pytest.raises(UnreadablePart, match="its members are damaged: "):
        dict(consumer_group(group).members)


def expected_of_format_6(group_type: str) -> Group:
    """The group in the kept snapshots of format 6: as in format 5, with the ids of topics at their offsets."""
    group = {"classic": expected_of_format_1, "consumer": expected_of_format_3}[group_type]()
    by_id = CommittedOffset(7, None, "", 1_700_000_000_007, None, 41, TOPIC_ID)
    group.offsets["topic"] = {**group.offsets.get("topic", {}), 6: by_id}
    group.open_transactions = {9: OpenTransaction(3, {"topic": {7: by_id, 8: CommittedOffset(8, 1, "", 0, None)}})}
    return group


def expected_of_format_7(group_type: str) -> Group:
    """The group in the kept snapshots of formats 7 and 8: as in format 6, with what was matched with a pattern."""
    group = expected_of_format_6(group_type)
    consumer = consumer_part(group)
    if consumer is not None:
        consumer.matched = {"t.*": MatchedTopics(2, ("t3",))}
        consumer.matching_until = 1_700_000_000_006_500
    return group


EXPECTED_OF_FORMATS: dict[tuple[int, str], Callable[[], Group]] = {
    (5, "classic"): expected_of_format_1,
    (5, "consumer"): expected_of_format_3,
    (6, "classic"): partial(expected_of_format_6, "classic"),
    (6, "consumer"): partial(expected_of_format_6, "consumer"),
    (7, "classic"): partial(expected_of_format_7, "classic"),
    (7, "consumer"): partial(expected_of_format_7, "consumer"),
}


@pytest.mark.parametrize(("version", "group_type"), EXPECTED_OF_FORMATS)
def test_a_snapshot_of_an_earlier_format_can_be_read_and_goes_on_in_the_newest(version: int, group_type: str) -> None:
    kept = bytes.fromhex((KEPT / f"format-{version}-{group_type}.hex").read_text())
    assert kept[0] == version
    group = snapshot.decode(kept)
    assert group == EXPECTED_OF_FORMATS[version, group_type]()
    assert snapshot.encode(group)[0] == snapshot.FORMAT_VERSION


def test_every_readable_format_has_a_kept_snapshot() -> None:
    kept = {path.name for path in KEPT.glob("*.hex")}
    older = {f"format-{version}.hex" for version in range(1, FIRST_FORMAT_OF_ANY_TYPE)}
    of_any_type = range(FIRST_FORMAT_OF_ANY_TYPE, snapshot.FORMAT_VERSION + 1)
    assert kept == older | {f"format-{version}-{group_type}.hex" for version in of_any_type for group_type in TYPES}


@pytest.mark.parametrize("group_type", TYPES)
def test_a_snapshot_of_format_8_can_be_read_and_is_written_again(group_type: str) -> None:
    kept = bytes.fromhex((KEPT / f"format-8-{group_type}.hex").read_text())
    assert kept[0] == 8
    expected = expected_of_format_7(group_type)
    assert snapshot.decode(kept) == expected
    assert snapshot.encode(expected) == kept


# ---- fields ----------------------------------------------------------------------------------------------------


def structs_of_a_snapshot() -> dict[str, type[msgspec.Struct]]:
    """Every struct that a snapshot holds, by its name."""
    found: dict[str, type[msgspec.Struct]] = {}

    def visit(part: object) -> None:
        if isinstance(part, StructType):
            if part.cls.__name__ not in found:
                found[part.cls.__name__] = part.cls
                visit([field.type for field in part.fields])
        elif isinstance(part, Type):
            visit([getattr(part, name) for name in type(part).__struct_fields__])
        elif isinstance(part, list | tuple):
            for each in part:
                visit(each)

    visit(multi_type_info([Group, CommittedOffset, MemberOutline, *PARTS.values()]))
    return dict(sorted(found.items()))


def fields_of_structs() -> dict[str, list[str]]:
    """The fields of every struct that a snapshot holds, in their order, by the struct's name."""
    return {name: list(struct.__struct_fields__) for name, struct in structs_of_a_snapshot().items()}


def test_a_changed_field_takes_a_new_format() -> None:
    """An older release would drop a field that it does not know: only the format's number makes it refuse.

    A new format is a new entry in the file. The entries of formats that were written are never changed.
    """
    kept: dict[str, dict[str, list[str]]] = msgspec.json.decode((KEPT / "fields.json").read_bytes())
    assert [int(version) for version in kept] == list(range(5, snapshot.FORMAT_VERSION + 1))
    assert kept[str(snapshot.FORMAT_VERSION)] == fields_of_structs()


def test_no_struct_of_a_snapshot_drops_fields_that_it_does_not_know() -> None:
    settings = {name: struct.__struct_config__ for name, struct in structs_of_a_snapshot().items()}
    assert {name for name, each in settings.items() if not each.array_like} == {Protocol.__name__}
    assert [name for name, each in settings.items() if each.array_like and not each.forbid_unknown_fields] == []


@pytest.mark.parametrize("group_type", TYPES)
def test_a_release_refuses_a_field_that_it_does_not_know(group_type: str) -> None:
    """A later release that appends a field without a new format makes this one refuse, and lose nothing."""
    header, fields = (
        snapshot.FORMAT_VERSION,
        msgspec.msgpack.decode(snapshot.encode(expected_of_format_7(group_type))[1:], strict=False),
    )
    later = bytes((header,)) + msgspec.msgpack.encode([*fields, "a field of a later release"])
    with pytest.raises(snapshot.UnreadableSnapshot, match="the snapshot is damaged: "):
        snapshot.decode(later)


def test_a_release_refuses_offsets_with_a_field_that_it_does_not_know() -> None:
    known = encode_topic({0: CommittedOffset(1, None, "", 0, None)})
    ((*fields,),) = map(msgspec.msgpack.decode, msgspec.msgpack.decode(known))
    later = msgspec.msgpack.encode([msgspec.msgpack.encode([*fields, "a field of a later release"])])
    encoded = snapshot.encode(Group("g", "0-0", offsets=StoredOffsets({"topic": later}, 1)))
    group = snapshot.decode(encoded)
    with pytest.raises(UnreadablePart, match="its offsets are damaged: "):
        group.offsets["topic"][0]
    assert snapshot.encode(group) == encoded, "bytes that are not understood are kept"


@pytest.mark.parametrize("group_type", TYPES)
def test_a_field_that_is_added_to_what_every_group_has_is_kept_for_every_type(
    group_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Later(Group, array_like=True, dict=True):
        added: int = 0

    monkeypatch.setattr(snapshot, "Group", Later)
    snapshot.decoder.cache_clear()
    try:
        group = Later("g", "0-0", PARTS[group_type](), added=7)
        assert snapshot.decode(snapshot.encode(group)) == group
        earlier = snapshot.decode(snapshot.encode(Group("g", "0-0", PARTS[group_type]())))
        assert earlier == Later("g", "0-0", PARTS[group_type](), added=0)
    finally:
        snapshot.decoder.cache_clear()


def test_a_group_is_decoded_as_it_was_encoded() -> None:
    group = expected_of_format_1()
    encoded = snapshot.encode(group)
    assert encoded[0] == snapshot.FORMAT_VERSION
    assert snapshot.decode(encoded) == group
    assert list(snapshot.decode(encoded).timers) == list(group.timers), "the order of timers is kept"
    assert snapshot.encode(snapshot.decode(encoded)) == encoded


def test_a_classic_group_keeps_its_configuration() -> None:
    group = expected_of_format_1()
    group.configs = {"consumer.session.timeout.ms": 50_000}
    encoded = snapshot.encode(group)
    assert encoded[0] == snapshot.FORMAT_VERSION
    assert snapshot.decode(encoded) == group


def test_two_decoded_groups_share_no_lists() -> None:
    first, second = (snapshot.decode(snapshot.encode(Group("g", "0-0"))) for _ in range(2))
    classic(first).pending_joins["m"] = None
    assert classic(second).pending_joins == {}


def test_changed_offsets_are_encoded_again() -> None:
    decoded = snapshot.decode(snapshot.encode(expected_of_format_1()))
    decoded.offsets["topic"].pop(0)
    decoded.offsets["other"] = {1: CommittedOffset(1, None, "", 0, None)}
    again = snapshot.decode(snapshot.encode(decoded))
    assert offset_count(again.offsets) == 2
    assert again.offsets == {"topic": {5: decoded.offsets["topic"][5]}, "other": decoded.offsets["other"]}
    del again.offsets["topic"], again.offsets["other"]
    assert not again.offsets
    assert snapshot.decode(snapshot.encode(again)).offsets == {}


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (b"", "the snapshot is empty"),
        (b"\x00\x90", "format version 0; readable here: 1"),
        (b"\x63\x90", "format version 99; readable here: 1"),
        (b"\x01", "the snapshot is damaged: "),
        (b"\x01\x90", "the snapshot is damaged: "),
        (b"\x01\xc1\xff", "the snapshot is damaged: "),
        (b"\x01not a snapshot", "the snapshot is damaged: "),
        (snapshot.encode(expected_of_format_1())[:-1], "the snapshot is damaged: "),
        (snapshot.encode(expected_of_format_1()) + b"\x00", "the snapshot is damaged: "),
        (snapshot.encode(expected_of_format_1()).replace("größe".encode(), b"gr\xc3\xff\xc3\xffe"), "is damaged: "),
        (snapshot.encode(expected_of_format_1()).replace(b"PreparingRebalance", b"PreparingRebalancf"), "is damaged: "),
    ],
)
def test_an_unreadable_snapshot_raises_with_the_reason(damaged: bytes, message: str) -> None:
    with pytest.raises(snapshot.UnreadableSnapshot, match=message):
        snapshot.decode(damaged)
