"""A journal as a group of consumers would leave, written by a script: hundreds of rebalances in no time.

The logic makes the same entries, but checks every step; tests of the story use it (:mod:`tests.logic.driver`).
"""

from collections.abc import Iterator, Sequence
from random import Random

from coordinator_logic.embedded_protocols import (
    Assignment,
    Subscription,
    TopicPartition,
    encode_assignment,
    encode_subscription,
)
from coordinator_logic.group.record import Record
from coordinator_logic.groups.classic.records import (
    AssignmentChanged,
    GenerationStarted,
    LeaderElected,
    MemberAdded,
    StateChanged,
)
from coordinator_logic.messages import Protocol
from coordinator_logic.records import (
    Cause,
    GroupCreated,
    JournalEntry,
    MemberRemoved,
    OffsetCommitted,
    OffsetsCommitted,
    RequestCause,
    TimerCause,
)
from streaming.explain.page.lanes import Lanes
from streaming.explain.page.of_group import ToldGroup
from streaming.explain.story.model import Story
from tests.journal.observed import observed

SESSION_MS, REBALANCE_MS = 45_000, 60_000
BEGIN = 1_764_000_000_000


class ScriptedGroup:
    """A classic group whose members come and go; each change is one rebalance, complete before the next one.

    ``shuffle``: the leader assigns at random, and does not let members keep what they have.
    """

    def __init__(
        self,
        group_id: str = "billing",
        topics: Sequence[tuple[str, int]] = (("orders", 12),),
        shuffle: Random | None = None,
    ) -> None:
        self.journal: list[JournalEntry] = []
        self.now = BEGIN
        self.members: dict[str, str] = {}
        self._group_id = group_id
        self._partitions = [TopicPartition(name, number) for name, count in topics for number in range(count)]
        self._owners: dict[TopicPartition, str] = {}
        self._shuffle = shuffle
        self._topics = [name for name, _ in topics]
        self._generation = 0
        self._requests = 0
        self._record(GroupCreated(), self._request("JoinGroup"))

    def sleep(self, ms: int) -> None:
        """Let time pass."""
        self.now += ms

    def start(self, *clients: str, host: str = "/10.0.3.7", reason: str = "") -> None:
        """Let clients join together, in one rebalance; a member's id is ``client id-number``."""
        was_empty = not self.members
        for place, client in enumerate(clients):
            member_id = f"{client}-{len(self.journal):04x}"
            cause = self._request("JoinGroup", member_id, client, host)
            subscription = encode_subscription(Subscription(self._topics))
            protocols = [Protocol("cooperative-sticky", subscription)]
            self._record(
                MemberAdded(member_id, None, client, host, REBALANCE_MS, SESSION_MS, "consumer", protocols), cause
            )
            if not self.members:
                self._record(LeaderElected(member_id), cause)
            self.members[member_id] = client
            if place == 0:
                before = "Empty" if was_empty else "Stable"
                text = f"member {member_id} joined" + (f": {reason}" if reason else "")
                self._record(StateChanged(before, "PreparingRebalance", text), cause)
            self.sleep(80)
        self._rebalance(3_000 if was_empty else 600)

    def leave(self, member_id: str, reason: str = "left: the consumer is being closed", joining_ms: int = 500) -> None:
        """Let a member leave; the others rejoin within so long a time."""
        self._remove(member_id, reason, self._request("LeaveGroup", "", self.members[member_id]), joining_ms)

    def expire(self, member_id: str, joining_ms: int = 900) -> None:
        """Let a member's session end."""
        self._remove(
            member_id, "its session timed out", TimerCause("heartbeat", member_id, self.now), joining_ms=joining_ms
        )

    def commit(self, *member_ids: str) -> None:
        """Let members commit."""
        for member_id in member_ids or list(self.members):
            committed = OffsetCommitted("orders", 0, 1, None, "", self.now, None)
            self._record(OffsetsCommitted([committed]), self._request("OffsetCommit", member_id))

    def _remove(self, member_id: str, reason: str, cause: Cause, joining_ms: int) -> None:
        del self.members[member_id]
        self._record(MemberRemoved(member_id, None, reason), cause)
        self._record(LeaderElected(next(iter(self.members), None)), cause)
        self._record(StateChanged("Stable", "PreparingRebalance", f"member {member_id} was removed"), cause)
        self._rebalance(joining_ms)

    def _rebalance(self, joining_ms: int) -> None:
        self.sleep(joining_ms)
        self._generation += 1
        if not self.members:
            timer = TimerCause("join", "", self.now)
            self._record(GenerationStarted(self._generation, None), timer)
            self._record(StateChanged("PreparingRebalance", "Empty", "no member is left"), timer)
            self._owners.clear()
            return
        leader, last = next(iter(self.members)), list(self.members)[-1]
        cause = self._request("JoinGroup", last)
        self._record(GenerationStarted(self._generation, "cooperative-sticky"), cause)
        self._record(StateChanged("PreparingRebalance", "CompletingRebalance", "has its members"), cause)
        self.sleep(150)
        cause = self._request("SyncGroup", leader)
        self._record(AssignmentChanged(self._assigned()), cause)
        self._record(StateChanged("CompletingRebalance", "Stable", "the leader assigned"), cause)

    def _assigned(self) -> dict[str, bytes]:
        """Each keeps what it has, up to its share."""
        if self._shuffle is not None:
            self._shuffle.shuffle(self._partitions)
            self._owners.clear()
        share = -(-len(self._partitions) // len(self.members))
        held: dict[str, list[TopicPartition]] = {member: [] for member in self.members}
        for partition in self._partitions:
            owner = self._owners.get(partition)
            if owner in held and len(held[owner]) < share:
                held[owner].append(partition)
        taken = {partition for partitions in held.values() for partition in partitions}
        for partition in self._partitions:
            if partition not in taken:
                min(held.values(), key=len).append(partition)
        self._owners = {partition: member for member, partitions in held.items() for partition in partitions}
        return {member: encode_assignment(Assignment(sorted(partitions))) for member, partitions in held.items()}

    def _request(self, api: str, member_id: str = "", client: str = "client", host: str = "/10.0.3.7") -> RequestCause:
        self._requests += 1
        return RequestCause(api, 5, member_id, client, host, f"request-{self._requests}", 0, self._requests)

    def _record(self, record: Record, cause: Cause) -> None:
        self.journal.append(JournalEntry(self._group_id, "0-0", len(self.journal) + 1, self.now, record, cause))


def incident() -> ScriptedGroup:
    """Two hours of a group of six: a rolling restart, a member that flaps, and a host that is lost."""
    group, random = ScriptedGroup("billing", (("orders", 12), ("returns", 4))), Random(3)
    group.start("billing-1", "billing-2", "billing-3")
    _work(group, random, 12)
    group.start("billing-4", host="/10.0.3.8")
    group.start("billing-5", "billing-6", host="/10.0.3.9")
    _work(group, random, 25)
    for number in range(1, 5):
        member_id = _member(group, f"billing-{number}")
        group.leave(member_id)
        _work(group, random, 1)
        group.start(f"billing-{number}", host="/10.0.3.8" if number == 4 else "/10.0.3.7")
        _work(group, random, 2)
    _work(group, random, 14)
    for _ in range(6):
        group.leave(_member(group, "billing-4"), "left: consumer poll timeout has expired.", joining_ms=7_000)
        _work(group, random, 1)
        group.start("billing-4", host="/10.0.3.8")
        _work(group, random, 2)
    _work(group, random, 10)
    for name in ("billing-5", "billing-6"):
        group.expire(_member(group, name), joining_ms=40_000)
        group.sleep(400)
    _work(group, random, 20)
    group.start("billing-7", "billing-8", host="/10.0.4.2")
    _work(group, random, 12)
    return group


def large(members: int = 200, rebalances: int = 500, *, shuffles: bool = False) -> ScriptedGroup:
    """A group of many members and 1,000 partitions, in which one leaves and another one comes, again and again."""
    random = Random(5)
    group = ScriptedGroup("large", (("orders", 1_000),), random if shuffles else None)
    group.start(*(f"worker-{number}" for number in range(members)))
    for number in range((rebalances - 1) // 2):
        group.sleep(60_000)
        group.commit()
        leaving = random.choice(list(group.members))
        client = group.members[leaving]
        if number % 3:
            group.leave(leaving)
        else:
            group.expire(leaving)
        group.sleep(20_000)
        group.start(client)
    return group


def told(entries: Sequence[JournalEntry], group_id: str = "billing", since: int = 0) -> tuple[Story, Lanes]:
    """The story and the lanes of a journal, from a time on."""
    group = observed(ToldGroup(group_id, since), entries)
    return group.teller.story(), group.lanes


def _work(group: ScriptedGroup, random: Random, minutes: int) -> None:
    for _ in range(minutes * 12):
        group.sleep(random.randint(4_500, 5_500))
        group.commit()


def _member(group: ScriptedGroup, client: str) -> str:
    return next(member_id for member_id, name in group.members.items() if name == client)


def ids_of(group: ScriptedGroup) -> Iterator[str]:
    """The ids of all members that the group has had."""
    for entry in group.journal:
        if isinstance(entry.record, MemberAdded):
            yield entry.record.member_id
