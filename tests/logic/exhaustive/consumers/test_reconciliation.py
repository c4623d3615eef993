"""Every interleaving of a small group's heartbeats, lost responses and new targets, with the invariants of KIP-848.

The clients are modelled: each has the partitions that it owns and the assignment of the last response that reached it.
A client lists what it owns only when it has followed the last response: one that first lists its partitions, and then
takes more of them because of an older response, would own what the group has given to others meanwhile.

The search covers the reconciliation alone, with every target that gives each partition to one member. Membership does
not change.
"""

from collections import deque
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple, TypeVar

import pytest

from coordinator_logic.assignors.server import Partitions
from coordinator_logic.groups.consumer.members import ConsumerMember, MemberState
from coordinator_logic.groups.consumer.reconciliation import Target, reconcile
from tests.logic.exhaustive.extent import covered

ItemT = TypeVar("ItemT")

TOPIC = "t"
PARTITIONS = 2
LAST_EPOCH = 3


class Client(NamedTuple):
    """A consumer: what it owns, and what the last response told it to own."""

    owned: frozenset[int] = frozenset()
    received: frozenset[int] = frozenset()


class World(NamedTuple):
    """A group and its clients. ``owners`` is the target: the index of a member for each partition."""

    epoch: int
    owners: tuple[int, ...]
    members: tuple[ConsumerMember, ...]
    clients: tuple[Client, ...]

    def key(self) -> tuple[object, ...]:
        """What decides the world's future: previous and assignment epochs do not."""
        members = tuple(
            (member.epoch, member.state, frozenset(member.assigned.get(TOPIC, ())), pending(member))
            for member in self.members
        )
        return self.epoch, self.owners, members, self.clients

    def target(self, index: int) -> Target:
        mine = frozenset(partition for partition, owner in enumerate(self.owners) if owner == index)
        return Target(self.epoch, {TOPIC: mine} if mine else {}, topic_ids={TOPIC}, subscribes=True)


def assigned(member: ConsumerMember) -> frozenset[int]:
    return frozenset(member.assigned.get(TOPIC, ()))


def pending(member: ConsumerMember) -> frozenset[int]:
    return frozenset(member.pending_revocation.get(TOPIC, ()))


def heartbeat(world: World, index: int, *, says_owned: bool = True, response_arrives: bool = True) -> World:
    held = {partition for member in world.members for partition in member.held_partitions()}
    client = world.clients[index]
    owned: Partitions | None = {TOPIC: client.owned} if says_owned and client.owned == client.received else None

    def is_free(*place: object) -> bool:
        return place not in held

    after = reconcile(world.members[index], world.target(index), owned, is_free, subscription_changed=False)
    if response_arrives:
        client = client._replace(received=assigned(after))
    return world._replace(members=replaced(world.members, index, after), clients=replaced(world.clients, index, client))


def follow_response(world: World, index: int) -> World:
    received = world.clients[index].received
    return world._replace(clients=replaced(world.clients, index, Client(received, received)))


def replaced(items: tuple[ItemT, ...], index: int, item: ItemT) -> tuple[ItemT, ...]:
    return (*items[:index], item, *items[index + 1 :])


def moves(world: World) -> Iterator[World]:
    for index in range(len(world.members)):
        yield heartbeat(world, index)
        yield heartbeat(world, index, says_owned=False)
        yield heartbeat(world, index, response_arrives=False)
        yield follow_response(world, index)
    if world.epoch < LAST_EPOCH:
        for owners in product(range(len(world.members)), repeat=PARTITIONS):
            yield world._replace(epoch=world.epoch + 1, owners=owners)


def check_no_double_assignment(world: World) -> None:
    held = [partition for member in world.members for partition in member.held_partitions()]
    assert len(held) == len(set(held))
    owned = [partition for client in world.clients for partition in client.owned]
    assert len(owned) == len(set(owned))


def check_owners_are_known(world: World) -> None:
    for member, client in zip(world.members, world.clients, strict=True):
        assert client.owned <= assigned(member) | pending(member)


def check_states(world: World) -> None:
    for index, member in enumerate(world.members):
        assert (member.state is MemberState.UNREVOKED_PARTITIONS) == bool(pending(member))
        if member.state is MemberState.STABLE and member.epoch == world.epoch:
            assert assigned(member) == world.target(index).partitions.get(TOPIC, frozenset())


def check_epochs(before: World, after: World) -> None:
    for old, new in zip(before.members, after.members, strict=True):
        assert old.epoch <= new.epoch <= after.epoch


def check_converges(world: World) -> None:
    for _ in range(4):
        for index in range(len(world.members)):
            world = follow_response(heartbeat(world, index), index)
    for index, (member, client) in enumerate(zip(world.members, world.clients, strict=True)):
        assert (member.state, member.epoch) == (MemberState.STABLE, world.epoch)
        assert client.owned == assigned(member) == world.target(index).partitions.get(TOPIC, frozenset())


@pytest.mark.parametrize("size", covered({"one": 1, "two": 2}, {"three": 3}).values())
def test_every_interleaving_is_safe_and_converges(size: int) -> None:
    start = World(
        epoch=1,
        owners=(0,) * PARTITIONS,
        members=tuple(ConsumerMember(f"m{index}") for index in range(size)),
        clients=(Client(),) * size,
    )
    seen = {start.key()}
    queue = deque([start])
    states = set()
    while queue:
        world = queue.popleft()
        check_no_double_assignment(world)
        check_owners_are_known(world)
        check_states(world)
        check_converges(world)
        states |= {member.state for member in world.members}
        for after in moves(world):
            check_epochs(world, after)
            if after.key() not in seen:
                seen.add(after.key())
                queue.append(after)
    # A member alone never has to wait, and never has to give anything up.
    assert states == ({MemberState.STABLE} if size == 1 else set(MemberState))
