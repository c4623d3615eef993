"""A group's participation in a transaction, and the outcome that a broker's description implies. No I/O."""

import secrets
from enum import StrEnum
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from coordinator_logic.messages import Int16, Int64

FIRST_ID = 1 << 62
"""Above every producer id: brokers count those from 0."""

EXPIRED_AFTER_MS = 24 * 3_600_000
"""Above any sensible ``transaction.max.timeout.ms``, below the week after which a broker forgets an id."""


class TransactionPhase(StrEnum):
    """Whether the producer has asked for the transaction's end, and for which outcome."""

    ONGOING = "ongoing"
    COMMITTING = "committing"
    ABORTING = "aborting"

    @classmethod
    def ending(cls, committed: bool) -> "TransactionPhase":
        """The phase of a transaction that ends with this outcome."""
        return cls.COMMITTING if committed else cls.ABORTING


class Participation(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A record of ``group-transactions``; its key is ``id`` as text.

    ``id`` replaces the producer id in the request events of this transaction. ``transaction_start_time_ms`` is the
    broker's, from DescribeTransactions.
    """

    id: Int64
    transactional_id: str
    producer_id: Int64
    producer_epoch: Int16
    transaction_start_time_ms: Int64
    group_id: str
    phase: TransactionPhase = TransactionPhase.ONGOING

    def belongs_to(self, transactional_id: str, producer_id: int, producer_epoch: int) -> bool:
        """Whether the transaction is one of this producer's."""
        producer = (self.transactional_id, self.producer_id, self.producer_epoch)
        return producer == (transactional_id, producer_id, producer_epoch)

    def with_phase(self, phase: TransactionPhase) -> "Participation":
        """A copy in another phase."""
        return replace(self, phase=phase)


class TransactionDescription(NamedTuple):
    """A transaction coordinator's description of a transactional id; ``state`` is Kafka's name."""

    state: str
    producer_id: int
    producer_epoch: int
    transaction_start_time_ms: int


def new_participation(transactional_id: str, group_id: str, description: TransactionDescription) -> Participation:
    """A group's participation in the transaction that is described, with an id of its own."""
    return Participation(
        id=FIRST_ID + secrets.randbelow(FIRST_ID),
        transactional_id=transactional_id,
        producer_id=description.producer_id,
        producer_epoch=description.producer_epoch,
        transaction_start_time_ms=description.transaction_start_time_ms,
        group_id=group_id,
    )


_COMMITTED_BY_STATE = {
    "PrepareCommit": True,
    "CompleteCommit": True,
    "PrepareAbort": False,
    "CompleteAbort": False,
}


def outcome(participation: Participation, description: TransactionDescription | None) -> bool | None:
    """Whether the transaction was committed; None if the description does not decide it. See docs/transactions.md.

    Obtain the description before reading the participation. It is None for an id that the broker does not know.
    """
    if description is None:
        # A coordinator that was replaced, and does not know it yet, would report the same.
        return None
    is_same_producer = description.producer_id == participation.producer_id
    epochs_ahead = description.producer_epoch - participation.producer_epoch
    if description.transaction_start_time_ms == participation.transaction_start_time_ms:
        # Fenced but Ongoing is undecided: if the coordinator fails to write the abort, another one may replace it and
        # know nothing of the abort. With transactions V2, the end gives a producer whose epochs are used up another id.
        is_outdated = is_same_producer and epochs_ahead < 0
        return None if is_outdated else _COMMITTED_BY_STATE.get(description.state)
    if is_same_producer and epochs_ahead > 0:
        return description.state == "Empty" and outcome_after_init(
            participation, description.producer_id, description.producer_epoch
        )
    # The producer began its next transaction only after the outcome of this one had been delivered.
    is_later = description.transaction_start_time_ms > participation.transaction_start_time_ms
    is_superseded = is_later and (epochs_ahead == 0 or not is_same_producer)
    return False if is_superseded else None


def is_expired(participation: Participation, description: TransactionDescription | None, now_ms: int) -> bool:
    """Whether the broker knows no such producer, and the transaction began too long ago to be decided any more."""
    is_unknown = description is None or description.producer_id != participation.producer_id
    return is_unknown and now_ms - participation.transaction_start_time_ms > EXPIRED_AFTER_MS


def outcome_after_init(participation: Participation, producer_id: int, producer_epoch: int) -> bool:
    """Whether the transaction was committed, given the producer id and epoch of a later InitProducerId response."""
    # With transactions V2, the producer's own end raises the epoch by one, as an abort by the broker may, and then
    # InitProducerId by one more; only one that names the epoch that the producer has ended does not.
    nothing_was_aborted = (producer_id, producer_epoch) == (participation.producer_id, participation.producer_epoch + 1)
    return nothing_was_aborted and participation.phase is TransactionPhase.COMMITTING
