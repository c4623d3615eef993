"""Which member epochs heartbeats and commits may quote."""

import msgspec
import pytest

from coordinator_logic.assignors.server import Partitions
from coordinator_logic.errors import Error
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.epochs import JOIN_EPOCH, check_commit_epoch, check_heartbeat_epoch
from coordinator_logic.groups.consumer.members import ConsumerMember, MemberState
from coordinator_logic.states import State

MEMBER = ConsumerMember(
    "m", epoch=12, previous_epoch=10, assigned={"t": {0: 10, 1: 12}}, pending_revocation={"u": {0: 9}}
)


def owns(*partitions: int) -> Partitions:
    return {"t": frozenset(partitions)}


@pytest.mark.parametrize("epoch", [12, JOIN_EPOCH])
def test_the_current_epoch_and_a_new_join_are_accepted(epoch: int) -> None:
    assert check_heartbeat_epoch(MEMBER, epoch, None) is Error.NONE


@pytest.mark.parametrize("epoch", [13, 11, 9])
def test_any_other_epoch_is_fenced(epoch: int) -> None:
    assert check_heartbeat_epoch(MEMBER, epoch, {}) is Error.FENCED_MEMBER_EPOCH


@pytest.mark.parametrize("owned", [{}, owns(0), owns(0, 1)])
def test_the_previous_epoch_is_accepted_when_only_the_response_was_lost(owned: Partitions) -> None:
    assert check_heartbeat_epoch(MEMBER, 10, owned) is Error.NONE


@pytest.mark.parametrize("owned", [None, owns(2), {"u": frozenset({0})}])
def test_the_previous_epoch_is_fenced_when_the_member_may_own_other_partitions(owned: Partitions | None) -> None:
    assert check_heartbeat_epoch(MEMBER, 10, owned) is Error.FENCED_MEMBER_EPOCH


@pytest.mark.parametrize(
    ("epoch", "topic", "partition", "error"),
    [
        (12, "t", 7, Error.NONE),
        (10, "t", 0, Error.NONE),
        (11, "t", 0, Error.NONE),
        (9, "t", 0, Error.STALE_MEMBER_EPOCH),
        (11, "t", 1, Error.STALE_MEMBER_EPOCH),
        (9, "u", 0, Error.NONE),
        (8, "u", 0, Error.STALE_MEMBER_EPOCH),
        (11, "v", 0, Error.STALE_MEMBER_EPOCH),
        (13, "t", 0, Error.STALE_MEMBER_EPOCH),
    ],
)
def test_a_commit_needs_an_epoch_since_which_the_member_has_the_partition(
    epoch: int, topic: str, partition: int, error: Error
) -> None:
    assert check_commit_epoch(MEMBER, epoch, topic, partition) is error


def test_a_groups_state_follows_from_its_epochs_and_members() -> None:
    waiting = msgspec.structs.replace(MEMBER, member_id="w", state=MemberState.UNRELEASED_PARTITIONS)

    def state_of(epoch: int, target_epoch: int, **members: ConsumerMember) -> State:
        group = ConsumerGroup(generation=epoch, target_epoch=target_epoch, members=members)
        return group.state_of_members

    assert state_of(12, 12) is State.EMPTY
    assert state_of(13, 12, m=MEMBER) is State.ASSIGNING
    assert state_of(13, 13, m=MEMBER) is State.RECONCILING
    assert state_of(12, 12, m=MEMBER, w=waiting) is State.RECONCILING
    assert state_of(12, 12, m=MEMBER) is State.STABLE
