"""The members of a group as lanes: when each was there, what it owned, and when it committed."""

from array import array
from dataclasses import dataclass, field, replace

from coordinator_logic.embedded_protocols import TopicPartition
from coordinator_logic.embedded_protocols.primitives import grouped_by_topic
from coordinator_logic.groups.classic.records import AssignmentChanged, MemberAdded, StateChanged
from coordinator_logic.groups.consumer.records import ConsumerMemberChanged, MemberAssignmentChanged
from coordinator_logic.records import (
    GroupCreated,
    GroupDeleted,
    JournalEntry,
    MemberRemoved,
    OffsetsCommitted,
    QuarantinedStateDropped,
    RequestCause,
    StaticMemberReplaced,
    TimerCause,
    TransactionalOffsetsCommitted,
)
from coordinator_logic.states import State
from streaming.contract.output.text import printable
from streaming.explain.story.moves import in_words
from streaming.explain.story.telling import StoryTeller
from streaming.journal.fold import Observer

Held = frozenset[TopicPartition]


def partitions_in_words(held: Held) -> str:
    """Partitions in words, such as ``orders 0-3``, safe to show."""
    return printable(in_words(grouped_by_topic(sorted(held))))


@dataclass
class Stay:
    """The time of a member in its group, in ms; ``until`` and ``reason`` are None while it is there.

    ``began_before``: it was there before the beginning of the page.
    """

    member_id: str
    since: int
    until: int | None = None
    reason: str | None = None
    was_expelled: bool = False
    began_before: bool = False


@dataclass
class Lane:
    """The members of one client, one after another: a client that is started again gets a new member id.

    ``owned`` has the partitions from a time on, in ms. ``commits`` are the times of its commits.
    """

    name: str
    instance_id: str | None
    stays: list[Stay] = field(default_factory=list)
    owned: list[tuple[int, Held]] = field(default_factory=list)
    commits: "array[int]" = field(default_factory=lambda: array("q"))

    @property
    def is_free(self) -> bool:
        """Whether its last member has gone."""
        return not self.stays or self.stays[-1].until is not None

    def begin(self, time: int) -> None:
        """Forget what was before a time, in ms, but the member and what it owned then."""
        newest = self.stays[-1]
        self.stays = [replace(newest, since=time, began_before=True)]
        self.owned = [(time, held) for _, held in self.owned[-1:] if held]
        self.commits = array("q")

    def own(self, time: int, partitions: Held) -> None:
        """Note what its member owns from a time on."""
        if partitions != (self.owned[-1][1] if self.owned else frozenset()):
            self.owned.append((time, partitions))


class Lanes(Observer):
    """The lanes of one group; ``teller`` gets each entry first.

    They begin with the teller's story: of the time before it, they keep who was a member then, and what it owned.

    A member goes into the lane of its instance id, or of its client id and host, if the former member has gone.
    """

    def __init__(self, teller: StoryTeller) -> None:
        self.lanes: list[Lane] = []
        self.outside = array("q")
        """The times of commits of no member: of administrators, and of consumers that assign their partitions."""
        self._teller = teller
        self._first: int | None = None
        self._has_begun = False
        self._of_member: dict[str, Lane] = {}
        self._by_client: dict[tuple[str, str | None], list[Lane]] = {}

    def on_entry(self, entry: JournalEntry) -> None:
        record, time = entry.record, entry.timestamp
        if self._first is None:
            self._first = time
        if self._teller.has_entries and not self._has_begun:
            self.begin(self._teller.first)
        match record:
            case MemberAdded(member_id=member_id) | ConsumerMemberChanged(member_id=member_id):
                self._enter(member_id, f"{record.client_id} at {record.client_host}", record.group_instance_id, time)
            case StaticMemberReplaced(old_member_id=old, new_member_id=new) if old in self._of_member:
                lane = self._of_member[new] = self._of_member.pop(old)
                lane.stays[-1].until, lane.stays[-1].reason = time, "replaced"
                lane.stays.append(Stay(new, time))
            case MemberRemoved(member_id=member_id, reason=reason):
                self._go(member_id, time, reason, was_expelled=isinstance(entry.cause, TimerCause))
            case AssignmentChanged(assignments=assignments) if assignments:
                self._own_all(time)
            case MemberAssignmentChanged(member_id=member_id):
                self._enter_known(member_id).own(time, self._teller.held_by(member_id))
            case StateChanged(to_state=State.EMPTY.value) | GroupCreated() | GroupDeleted() | QuarantinedStateDropped():
                for member_id in list(self._of_member):
                    self._go(member_id, time, "the group is empty", was_expelled=False)
            case OffsetsCommitted() | TransactionalOffsetsCommitted():
                self._commit(entry)

    def begin(self, time: int) -> None:
        """Forget what was before a time, in ms, but the members and what they owned then."""
        self._has_begun, self._first = True, time
        self.lanes = [lane for lane in self.lanes if not lane.is_free]
        self._by_client = {
            client: kept
            for client, lanes in self._by_client.items()
            if (kept := [lane for lane in lanes if not lane.is_free])
        }
        self.outside = array("q")
        for lane in self.lanes:
            lane.begin(time)

    def _enter(self, member_id: str, name: str, instance_id: str | None, time: int, *, before: bool = False) -> Lane:
        if member_id in self._of_member:
            return self._of_member[member_id]
        lanes = self._by_client.setdefault((name if instance_id is None else "", instance_id), [])
        lane = next((one for one in lanes if one.is_free), None)
        if lane is None:
            lane = Lane(name, instance_id)
            lanes.append(lane)
            self.lanes.append(lane)
        lane.stays.append(Stay(member_id, time, began_before=before))
        self._of_member[member_id] = lane
        return lane

    def _go(self, member_id: str, time: int, reason: str, *, was_expelled: bool) -> None:
        lane = self._of_member.pop(member_id, None)
        if lane is not None:
            stay = lane.stays[-1]
            stay.until, stay.reason, stay.was_expelled = time, reason, was_expelled
            lane.own(time, frozenset())

    def _own_all(self, time: int) -> None:
        held: dict[str, set[TopicPartition]] = {}
        for partition, member_id in self._teller.owners.items():
            held.setdefault(member_id, set()).add(partition)
        for member_id in held.keys() - self._of_member.keys():
            self._enter_known(member_id)
        for member_id, lane in self._of_member.items():
            lane.own(time, frozenset(held.get(member_id, ())))

    def _enter_known(self, member_id: str) -> Lane:
        """The lane of a member, which may have joined before the first entry that was read."""
        lane = self._of_member.get(member_id)
        if lane is not None:
            return lane
        return self._enter(member_id, member_id, None, self._first or 0, before=True)

    def _commit(self, entry: JournalEntry) -> None:
        member_id = entry.cause.member_id if isinstance(entry.cause, RequestCause) else ""
        # A member id that is none is accepted while the group is Empty.
        if member_id in self._of_member or (member_id and not self._teller.knows_all_members):
            self._enter_known(member_id).commits.append(entry.timestamp)
        else:
            self.outside.append(entry.timestamp)
