"""A group's part in a transaction, and what becomes of it. No I/O here."""

import secrets
from enum import StrEnum
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from coordinator_logic.messages import Int16, Int64

__all__ = ["Described", "Participation", "Phase", "is_forgotten", "new_participation", "outcome", "outcome_after_init"]

FIRST_ID = 1 << 62
"""Higher than any producer id that a broker will ever give away, which are counted from 0."""


FORGOTTEN_AFTER_MS = 24 * 3_600_000
"""Far more than the longest ``transaction.max.timeout.ms`` that anybody would set, and less than the week after which
a broker forgets an id."""


class Phase(StrEnum):
    """What the producer wants with the transaction, as far as it has said so."""

    ONGOING = "ongoing"
    COMMITTING = "committing"
    ABORTING = "aborting"

    @classmethod
    def ending(cls, committed: bool) -> "Phase":
        """The phase in which it ends that way."""
        return cls.COMMITTING if committed else cls.ABORTING


class Participation(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A line of ``group-transactions``, keyed by ``id`` as text.

    ``id`` stands for the producer id in the events about this transaction. ``transaction_start_time_ms`` is the
    broker's, as told by DescribeTransactions.
    """

    id: Int64
    transactional_id: str
    producer_id: Int64
    producer_epoch: Int16
    transaction_start_time_ms: Int64
    group_id: str
    phase: Phase = Phase.ONGOING

    def belongs_to(self, transactional_id: str, producer_id: int, producer_epoch: int) -> bool:
        """Whether it is part of a transaction of this producer."""
        mine = (self.transactional_id, self.producer_id, self.producer_epoch)
        return mine == (transactional_id, producer_id, producer_epoch)

    def in_phase(self, phase: Phase) -> "Participation":
        """The line as it is from now on."""
        return replace(self, phase=phase)


class Described(NamedTuple):
    """What a transaction coordinator tells of a transactional id; ``state`` by Kafka's name."""

    state: str
    producer_id: int
    producer_epoch: int
    transaction_start_time_ms: int


def new_participation(transactional_id: str, group_id: str, described: Described) -> Participation:
    """A group's part in the transaction that is under way."""
    return Participation(
        id=FIRST_ID + secrets.randbelow(FIRST_ID),
        transactional_id=transactional_id,
        producer_id=described.producer_id,
        producer_epoch=described.producer_epoch,
        transaction_start_time_ms=described.transaction_start_time_ms,
        group_id=group_id,
    )


_COMMITTED_BY_STATE = {
    "PrepareCommit": True,
    "CompleteCommit": True,
    "PrepareAbort": False,
    "CompleteAbort": False,
}


def outcome(participation: Participation, described: Described | None) -> bool | None:
    """Whether its transaction was committed; None while that cannot be said.

    ``described`` is what the broker has told before the line was read; None for an id that it does not know. See the
    package's description for why.
    """
    if described is None or described.producer_id != participation.producer_id:
        # A coordinator that was replaced and does not know it yet would say the same.
        return None
    ahead = described.producer_epoch - participation.producer_epoch
    if described.transaction_start_time_ms == participation.transaction_start_time_ms:
        # Fenced, but still Ongoing: a coordinator whose write of the abort fails may yet be replaced by another one
        # that knows nothing of it.
        return None if ahead < 0 else _COMMITTED_BY_STATE.get(described.state)
    if ahead > 0:
        return described.state == "Empty" and outcome_after_init(
            participation, described.producer_id, described.producer_epoch
        )
    # Its own end was told before the producer could begin the later one.
    is_over = ahead == 0 and described.transaction_start_time_ms > participation.transaction_start_time_ms
    return False if is_over else None


def is_forgotten(participation: Participation, described: Described | None, now_ms: int) -> bool:
    """Whether the broker has been telling of another producer, or of nobody, for so long that nothing will come."""
    of_another = described is None or described.producer_id != participation.producer_id
    return of_another and now_ms - participation.transaction_start_time_ms > FORGOTTEN_AFTER_MS


def outcome_after_init(participation: Participation, producer_id: int, producer_epoch: int) -> bool:
    """Whether its transaction was committed, when InitProducerId has answered this producer id and epoch since."""
    nothing_was_aborted = (producer_id, producer_epoch) == (participation.producer_id, participation.producer_epoch + 1)
    return nothing_was_aborted and participation.phase is Phase.COMMITTING
