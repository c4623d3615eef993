"""DescribeGroups, ListGroups and DeleteGroups."""

import pytest

from coordinator_logic.errors import Error
from coordinator_logic.handlers.list_groups import list_groups
from coordinator_logic.messages import (
    DeletedGroup,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribedMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
)
from coordinator_logic.records import GroupDeleted, GroupDirectoryEntry, directory_entry
from coordinator_logic.states import State
from tests.logic.driver import GROUP_ID, Answer, Driven, assignment_of, joined

# ---- DescribeGroups --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(6))
def test_before_version_6_an_absent_group_is_described_as_dead(driven: Driven, version: int) -> None:
    assert driven.describe(version=version) == DescribedGroup(GROUP_ID, group_state="Dead")
    assert not driven.exists


def test_from_version_6_on_an_absent_group_is_not_found(driven: Driven) -> None:
    described = driven.describe(version=6)
    assert (described.error_code, described.group_state) == (69, "Dead")
    assert described.error_message == f"Group {GROUP_ID} not found."


def test_a_stable_group_is_described_with_metadata_and_assignments(driven: Driven) -> None:
    members = driven.stable_group(2, static=1)
    described = driven.describe()
    assert described == DescribedGroup(
        GROUP_ID,
        group_state="Stable",
        protocol_type="consumer",
        protocol_data="range",
        members=[
            DescribedMember(
                member.member_id,
                member.group_instance_id,
                f"client-{i}",
                "/127.0.0.1",
                b"subscription",
                assignment_of(member.member_id),
            )
            for i, member in enumerate(members)
        ],
        authorized_operations=-(2**31),
    )


def test_while_rebalancing_metadata_is_hidden_and_assignments_are_not(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    driven.join_new("c2")
    described = driven.describe()
    assert (described.group_state, described.protocol_data) == ("PreparingRebalance", "")
    assert [(m.member_metadata, m.member_assignment) for m in described.members] == [
        (b"", assignment_of(member.member_id)),
        (b"", b""),
    ]


def test_before_the_assignment_metadata_is_hidden_too(driven: Driven) -> None:
    driven.join_with_members(1)
    described = driven.describe()
    assert (described.group_state, described.protocol_data) == ("CompletingRebalance", "")
    assert [m.member_metadata for m in described.members] == [b""]


def test_simple_groups_and_handed_out_ids_are_described_without_members(driven: Driven) -> None:
    driven.commit()
    driven.join()
    assert driven.describe() == DescribedGroup(GROUP_ID, group_state="Empty")


def test_an_emptied_group_keeps_its_type(driven: Driven) -> None:
    driven.empty_group()
    described = driven.describe()
    assert (described.group_state, described.protocol_type, described.protocol_data) == ("Empty", "consumer", "")


def test_describing_another_group_is_answered_not_coordinator(driven: Driven) -> None:
    driven.commit()
    answer: Answer[DescribeGroupsResponse]
    answer = driven.send("DescribeGroups", DescribeGroupsRequest(["other", GROUP_ID, ""]))
    assert [(entry.group_id, entry.error_code) for entry in answer.body.groups] == [
        ("other", Error.NOT_COORDINATOR),
        (GROUP_ID, Error.NONE),
        ("", Error.NOT_COORDINATOR),
    ]


def test_the_empty_group_id_can_be_described_and_deleted() -> None:
    driven = Driven(group_id="")
    driven.commit()
    assert driven.describe().group_state == "Empty"
    assert driven.delete() is Error.NONE


@pytest.mark.parametrize("similar", [GROUP_ID.upper(), f" {GROUP_ID}", f"{GROUP_ID} "])
def test_a_group_id_is_neither_trimmed_nor_is_its_case_ignored(driven: Driven, similar: str) -> None:
    driven.commit()
    answer: Answer[DescribeGroupsResponse]
    answer = driven.send("DescribeGroups", DescribeGroupsRequest([similar]))
    assert answer.body.groups[0].error_code == Error.NOT_COORDINATOR


# ---- DeleteGroups ----------------------------------------------------------------------------------------------


def test_an_absent_group_cannot_be_deleted(driven: Driven) -> None:
    assert driven.delete() is Error.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("offsets", [False, True])
def test_an_empty_group_is_deleted_with_its_offsets(driven: Driven, offsets: bool) -> None:
    driven.empty_group()
    if offsets:
        driven.commit()
    assert driven.delete() is Error.NONE
    assert not driven.exists
    assert isinstance(driven.records[-1], GroupDeleted)
    assert driven.delete() is Error.GROUP_ID_NOT_FOUND
    assert driven.fetch() == []


def test_a_group_with_members_is_not_deleted(driven: Driven) -> None:
    answer = driven.join_new()
    assert driven.delete() is Error.NON_EMPTY_GROUP
    driven.sleep(3_000)
    assert driven.delete() is Error.NON_EMPTY_GROUP
    driven.sync_all([joined(answer)])
    assert driven.delete() is Error.NON_EMPTY_GROUP
    assert driven.state() is State.STABLE


def test_handed_out_ids_do_not_prevent_a_deletion(driven: Driven) -> None:
    member_id = driven.join().body.member_id
    assert driven.delete() is Error.NONE
    assert driven.join(member_id).error is Error.UNKNOWN_MEMBER_ID
    assert driven.wake_at is None


def test_a_group_created_again_counts_from_one(driven: Driven) -> None:
    driven.empty_group()
    before = driven.group.incarnation
    driven.delete()
    driven.commit()
    assert (driven.group.generation, driven.group.sequence) == (0, 2)
    assert driven.group.incarnation != before


def test_each_name_is_answered_once_and_other_groups_not_coordinator(driven: Driven) -> None:
    driven.commit()
    names = ["other", GROUP_ID, GROUP_ID, "other"]
    answer: Answer[DeleteGroupsResponse] = driven.send("DeleteGroups", DeleteGroupsRequest(names))
    assert answer.body.results == [
        DeletedGroup("other", Error.NOT_COORDINATOR),
        DeletedGroup(GROUP_ID, Error.NONE),
    ]


# ---- ListGroups ------------------------------------------------------------------------------------------------

DIRECTORY = [
    GroupDirectoryEntry("simple", "Empty", "classic", "", 0, 0),
    GroupDirectoryEntry("connect", "Stable", "classic", "connect", 4, 2),
    GroupDirectoryEntry("modern", "Stable", "consumer", "consumer", 4, 2),
    GroupDirectoryEntry("busy", "PreparingRebalance", "classic", "consumer", 4, 2),
]


@pytest.mark.parametrize(
    ("states", "types", "listed"),
    [
        ([], [], ["simple", "connect", "modern", "busy"]),
        (["Stable"], [], ["connect", "modern"]),
        ([" sTaBlE ", "PREPARINGREBALANCE"], [], ["connect", "modern", "busy"]),
        (["NoSuchState"], [], []),
        ([], ["Classic"], ["simple", "connect", "busy"]),
        ([], ["consumer"], ["modern"]),
        ([], ["CONSUMER", "classic"], ["simple", "connect", "modern", "busy"]),
        ([], ["no-such-type"], []),
        (["stable"], ["classic"], ["connect"]),
    ],
)
def test_the_list_has_the_groups_that_pass_both_filters(states: list[str], types: list[str], listed: list[str]) -> None:
    response = list_groups(DIRECTORY, ListGroupsRequest(states, types))
    assert [group.group_id for group in response.groups] == listed


def test_an_empty_directory_lists_nothing() -> None:
    assert list_groups([], ListGroupsRequest()).groups == []


def test_a_group_is_listed_with_type_state_and_protocol_type(driven: Driven) -> None:
    driven.commit()
    simple = directory_entry(driven.group)
    driven.stable_group(2)
    entries = [simple, directory_entry(driven.group)]
    assert entries[1] == GroupDirectoryEntry(GROUP_ID, "Stable", "classic", "consumer", 1, 2, offsets=1)
    assert list_groups(entries, ListGroupsRequest()).groups == [
        ListedGroup(GROUP_ID, "", "Empty", "classic"),
        ListedGroup(GROUP_ID, "consumer", "Stable", "classic"),
    ]
