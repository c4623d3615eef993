"""The story of a consumer group (KIP-848): its epochs, each with a target that its members reach one by one."""

from collections.abc import Mapping

from coordinator_logic.embedded_protocols import TopicPartition
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.records import ConsumerGroupFormed, GroupEpochBumped, TargetAssignmentChanged
from coordinator_logic.messages.groups import CONSUMER_TYPE
from coordinator_logic.records import JournalEntry
from streaming.explain.story.group_types.epochs import Epochs
from streaming.explain.story.group_types.telling import Telling, TypeTelling, TypeWords
from streaming.explain.story.group_types.waits import ConsumerWaits, Waiting
from streaming.explain.story.moves import Owners


class ConsumerTelling(TypeTelling):
    """Tells of a consumer group."""

    WORDS = TypeWords(
        number="epoch",
        phases=("the target", "its members"),
        spans=("target", "members"),
        waits=("its target assignment", "its members to reach the target"),
    )
    RECORDS = (ConsumerGroupFormed, *ConsumerGroup.records)

    def __init__(self, telling: Telling) -> None:
        super().__init__(telling)
        self._waits = ConsumerWaits(telling.roster)
        self._epochs = Epochs(None)

    def tell(self, entry: JournalEntry) -> None:
        telling, record, time = self._telling, entry.record, entry.timestamp
        if isinstance(record, ConsumerGroupFormed):
            self._epochs, telling.generation = Epochs(record.epoch), record.epoch
        epochs, course = self._epochs, telling.course
        member_id = getattr(record, "member_id", "")
        before = epochs.members.get(member_id)
        is_new_epoch = isinstance(record, GroupEpochBumped) and (epochs.epoch is None or record.epoch > epochs.epoch)
        owners = epochs.owners if is_new_epoch else None
        if owners is not None:
            telling.move_to(owners, len(epochs.members))
            course.end(time, is_interrupted=True)
        epochs.change(record, time)
        if before is not None:
            course.add_waits(self._waits.ended_revocation(member_id, before, epochs, time))
        if owners is not None:
            telling.generation = epochs.epoch
            telling.begin_rebalance(CONSUMER_TYPE, was_empty=False)
            course.amend(generation=epochs.epoch)
            telling.owners = owners if telling.roster.is_complete else None
        elif isinstance(record, TargetAssignmentChanged):
            course.amend(joined=time)
        telling.enter(epochs.state, time)
        if epochs.is_settled and course.open is not None:
            course.add_waits(self._waits.last_to_arrive(entry, course.open.began))
            telling.move_to(epochs.owners, len(epochs.members))
            course.end(time)

    def leave(self, entry: JournalEntry) -> None:
        """End a rebalance that goes on; the owners stay."""
        self._telling.owners = self._epochs.owners
        self._telling.course.end(entry.timestamp, is_interrupted=True)

    @property
    def owners(self) -> Owners:
        return self._epochs.owners

    def held_by(self, member_id: str) -> frozenset[TopicPartition]:
        """What a member holds: also what it is to revoke."""
        return self._epochs.held_by(member_id)

    def epochs(self) -> Mapping[str, int | None]:
        return {member_id: member.epoch for member_id, member in self._epochs.members.items()}

    def waiting(self) -> Waiting:
        return self._waits.now(self._epochs)
