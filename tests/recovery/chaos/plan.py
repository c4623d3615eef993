"""What a run is, from its seed: the groups, the faults and when, and how the job is set up."""

from collections.abc import Iterable
from random import Random

import msgspec

from streaming.contract.output.text import counted
from tests.recovery.chaos.faults.catalogue import FAULTS
from tests.recovery.chaos.needs import Need, are_met, fit_together

MIXED_SHARE = 0.5
"""How many of the runs have more than one fault."""

MOST_FAULTS = 3
LATEST_MS = 5_000
"""When the last fault of a run begins, after the groups have formed."""

REBALANCE_MS = 8_000
LONG_REBALANCE_MS = 120_000
"""Longer than any outage: a member that is expelled has not been too late for a rebalance."""

TRANSACTIONAL_SHARE = 0.5
LONG_REVOCATION_SHARE = 0.5
ROCKSDB_SHARE = 0.35
TWO_PARTITIONS_SHARE = 0.35


class PlannedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A group over topics; ``static_members`` of its members have an instance id.

    ``is_reconciling``: whether its members speak the consumer group protocol (KIP-848), in which they are neither eager
    nor cooperative.
    """

    name: str
    is_cooperative: bool
    members: int
    static_members: int
    partitions: int
    rebalance_ms: int
    is_reconciling: bool = False


class PlannedFault(msgspec.Struct, frozen=True, kw_only=True):
    """A fault, when it begins (ms after the groups have formed), and the seed of its own random numbers."""

    name: str
    at_ms: int
    seed: int


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A run. ``transactional_members``: consumers behind the gateway that commit in transactions."""

    seed: int
    groups: list[PlannedGroup]
    transactional_members: int
    faults: list[PlannedFault]
    state_store: str
    state_partitions: int

    @property
    def needs(self) -> frozenset[Need]:
        """What the run needs."""
        needs = needs_of(fault.name for fault in self.faults)
        return needs | {Need.GATEWAY} if self.transactional_members else needs

    def describe(self) -> str:
        """The plan in a line."""
        faults = ", ".join(f"{fault.name} at {fault.at_ms / 1000:.1f} s" for fault in self.faults)
        groups = ", ".join(map(_kind, self.groups))
        return (
            f"seed {self.seed}: {faults}; {groups}, {self.transactional_members} transactional; "
            f"{self.state_store}, {counted(self.state_partitions, 'state partition')}"
        )


def needs_of(faults: Iterable[str]) -> frozenset[Need]:
    """What these faults need."""
    return frozenset(need for name in faults for need in FAULTS[name].needs)


def make_plan(
    seed: int, only: str | None = None, *, has_consumer_members: bool = False, on_cluster: bool = False
) -> Plan:
    """The plan of a run; the seeds 0, 1, 2, ... begin with each of the faults.

    only: a fault to inject alone. Raises KeyError for an unknown one. has_consumer_members: adds a group whose members
    speak the consumer group protocol. on_cluster: whether the jobs run on a standalone cluster with an object store.
    """
    chance = Random(seed)
    names = faults_of(on_cluster=on_cluster)
    # Alternately, so that each fault meets both.
    is_eager_long = seed // len(names) % 2 == 0
    first = FAULTS[only].name if only is not None else names[seed % len(names)]
    chosen = [first] if only is not None else [first, *_further(first, chance, on_cluster=on_cluster)]
    plan = Plan(
        seed=seed,
        groups=[
            _group("eager", False, is_eager_long, chance),
            _group("cooperative", True, not is_eager_long, chance),
        ],
        transactional_members=_transactional_members(chosen, chance),
        faults=[
            PlannedFault(name=name, at_ms=chance.randint(0, LATEST_MS), seed=chance.getrandbits(32)) for name in chosen
        ],
        state_store="rocksdb" if chance.random() < ROCKSDB_SHARE else "memory",
        state_partitions=2 if chance.random() < TWO_PARTITIONS_SHARE else 1,
    )
    if not has_consumer_members:
        return plan
    # Drawn last, so that a seed gives the faults and the classic groups that it gave before there was this group.
    reconciling = _group("consumer", False, chance.random() < LONG_REVOCATION_SHARE, chance)
    return msgspec.structs.replace(
        plan, groups=[*plan.groups, msgspec.structs.replace(reconciling, is_reconciling=True)]
    )


def faults_of(*, on_cluster: bool) -> list[str]:
    """The faults of a campaign on one host, or on a standalone cluster with an object store."""
    return [name for name, fault in FAULTS.items() if are_met(fault.needs, on_cluster=on_cluster)]


def _further(first: str, chance: Random, *, on_cluster: bool) -> list[str]:
    if FAULTS[first].is_alone or chance.random() >= MIXED_SHARE:
        return []
    chosen = [first]
    for _ in range(chance.randint(1, MOST_FAULTS - 1)):
        fitting = [
            name
            for name in faults_of(on_cluster=on_cluster)
            if not FAULTS[name].is_alone and fit_together(needs_of([*chosen, name]), on_cluster=on_cluster)
        ]
        chosen.append(chance.choice(fitting))
    return chosen[1:]


def _transactional_members(faults: Iterable[str], chance: Random) -> int:
    drawn = chance.randint(1, 2) if chance.random() < TRANSACTIONAL_SHARE else 0
    # A fault of the gateway breaks nothing that anybody sees if no client is behind it.
    return max(drawn, 1 if Need.GATEWAY in needs_of(faults) else 0)


def _group(name: str, is_cooperative: bool, is_long: bool, chance: Random) -> PlannedGroup:
    members = chance.randint(2, 4)
    return PlannedGroup(
        name=name,
        is_cooperative=is_cooperative,
        members=members,
        static_members=chance.randint(0, members),
        partitions=chance.randint(3, 6),
        rebalance_ms=LONG_REBALANCE_MS if is_long else REBALANCE_MS,
    )


def _kind(group: PlannedGroup) -> str:
    dynamic = group.members - group.static_members
    members = f"{dynamic} dynamic and {group.static_members} static members"
    return f"{group.name} with {members} and rebalances of {group.rebalance_ms // 1000} s"
