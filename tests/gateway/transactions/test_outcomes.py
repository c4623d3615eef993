"""The outcome that a broker's state implies for a participation, checked against a model of the broker."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from streaming.gateway.transactions.participation import (
    Participation,
    TransactionDescription,
    TransactionPhase,
    is_expired,
    new_participation,
    outcome,
    outcome_after_init,
)

ONGOING = TransactionDescription("Ongoing", 7, 3, 1_000)
PARTICIPATION = new_participation("t", "g", ONGOING)
NO_TRANSACTION = TransactionDescription("Empty", 7, 0, -1)


@pytest.mark.parametrize(
    ("description", "committed"),
    [
        (ONGOING, None),
        (ONGOING._replace(state="PrepareCommit"), True),
        (ONGOING._replace(state="CompleteCommit"), True),
        (ONGOING._replace(state="PrepareAbort"), False),
        (ONGOING._replace(state="CompleteAbort"), False),
        # Aborted at its timeout.
        (ONGOING._replace(state="PrepareAbort", producer_epoch=4), False),
        (ONGOING._replace(state="CompleteAbort", producer_epoch=5), False),
        # The abort is not in the broker's log yet, and may never be.
        (ONGOING._replace(producer_epoch=4), None),
        # Reported by a coordinator that does not know of this transaction yet.
        (ONGOING._replace(state="CompleteCommit", transaction_start_time_ms=900), None),
        (ONGOING._replace(state="CompleteAbort", producer_epoch=2, transaction_start_time_ms=900), None),
        (ONGOING._replace(state="Empty", transaction_start_time_ms=-1), None),
        # The same producer's next transaction: this one's outcome was delivered before.
        (ONGOING._replace(transaction_start_time_ms=2_000), False),
        # With transactions V2, the producer's end has raised its epoch, or given it the next producer id.
        (ONGOING._replace(state="PrepareCommit", producer_epoch=4), True),
        (ONGOING._replace(state="CompleteCommit", producer_epoch=4), True),
        (TransactionDescription("CompleteCommit", 9, 0, 1_000), True),
        (TransactionDescription("CompleteAbort", 9, 0, 1_000), False),
        (ONGOING._replace(producer_epoch=4, transaction_start_time_ms=2_000), False),
        (TransactionDescription("Ongoing", 9, 0, 2_000), False),
        # The broker does not know this producer.
        (TransactionDescription("Empty", 8, 0, -1), None),
        (None, None),
    ],
)
@pytest.mark.parametrize("phase", TransactionPhase)
def test_the_state_decides_whatever_the_intended_outcome(
    description: TransactionDescription | None, committed: bool | None, phase: TransactionPhase
) -> None:
    assert outcome(PARTICIPATION.with_phase(phase), description) is committed


@pytest.mark.parametrize("phase", TransactionPhase)
@pytest.mark.parametrize("epochs_ahead", [1, 2, 3])
def test_after_init_producer_id_the_intended_outcome_counts_unless_the_broker_aborted(
    phase: TransactionPhase, epochs_ahead: int
) -> None:
    description = TransactionDescription("Empty", 7, 3 + epochs_ahead, -1)
    committed = phase is TransactionPhase.COMMITTING and epochs_ahead == 1
    assert outcome(PARTICIPATION.with_phase(phase), description) is committed
    assert outcome_after_init(PARTICIPATION.with_phase(phase), 7, 3 + epochs_ahead) is committed
    assert outcome_after_init(PARTICIPATION.with_phase(phase), 8, 3 + epochs_ahead) is False


@pytest.mark.parametrize("epochs_ahead", [1, 2, 3])
def test_after_an_end_that_raises_the_epoch_a_further_epoch_may_be_an_aborts(
    epochs_ahead: int,
) -> None:
    ending = PARTICIPATION.with_phase(TransactionPhase.COMMITTING)
    assert outcome_after_init(ending, 7, 3 + epochs_ahead) is (epochs_ahead == 1)


def test_a_transaction_that_no_broker_knows_expires_after_a_day() -> None:
    day = 24 * 3_600_000
    for description in (None, TransactionDescription("Ongoing", 8, 3, 1_000)):
        assert not is_expired(PARTICIPATION, description, PARTICIPATION.transaction_start_time_ms + day)
        assert is_expired(PARTICIPATION, description, PARTICIPATION.transaction_start_time_ms + day + 1)
    assert not is_expired(PARTICIPATION, ONGOING, PARTICIPATION.transaction_start_time_ms + 2 * day)


def test_ids_are_unique_and_differ_from_producer_ids() -> None:
    ids = {new_participation("t", "g", ONGOING).id for _ in range(1_000)}
    assert len(ids) == 1_000
    assert min(ids) >= 1 << 62
    assert max(ids) < 1 << 63


# ---- every sequence of events in a producer's transactions --------------------------------------------------------


@dataclass(frozen=True)
class Scenario:
    """The coordinator's state of one transactional id, and the participation and true outcome of a transaction."""

    broker: TransactionDescription = NO_TRANSACTION
    clock: int = 0
    participation: Participation | None = None
    committed: bool | None = None
    raises_epoch: bool = False
    """Whether the producer uses transactions V2."""

    def next(self) -> Iterator["Scenario"]:
        """Every event that can happen next, with producers and gateways that follow docs/transactions.md."""
        yield from self._begin()
        yield from self._request_end()
        yield from self._end()
        yield from self._advance()
        yield from self._init_producer_id()

    def _at_broker(self, state: str, epochs: int = 0, start: int | None = None) -> TransactionDescription:
        began = self.broker.transaction_start_time_ms if start is None else start
        return self.broker._replace(
            state=state, producer_epoch=self.broker.producer_epoch + epochs, transaction_start_time_ms=began
        )

    def _begin(self) -> Iterator["Scenario"]:
        # A client begins after the response to its last EndTxn, when the participation has been erased.
        if self.broker.state in ("Empty", "CompleteCommit", "CompleteAbort") and self.participation is None:
            clock = self.clock + 1
            began = self._at_broker("Ongoing", start=clock)
            yield replace(self, broker=began, clock=clock, participation=new_participation("t", "g", began))

    def _request_end(self) -> Iterator["Scenario"]:
        if self.participation is not None and self.participation.phase is TransactionPhase.ONGOING:
            for committed in (True, False):
                ending = self.participation.with_phase(TransactionPhase.ending(committed))
                yield replace(self, participation=ending)

    def _end(self) -> Iterator["Scenario"]:
        participation = self.participation
        if (
            participation is None
            or participation.phase is TransactionPhase.ONGOING
            or self.broker.producer_epoch != participation.producer_epoch
        ):
            return
        committed = participation.phase is TransactionPhase.COMMITTING
        if self.broker.state == "Ongoing":
            ended = self._at_broker("PrepareCommit" if committed else "PrepareAbort", int(self.raises_epoch))
            yield replace(self, broker=ended, committed=committed)

    def _advance(self) -> Iterator["Scenario"]:
        if self.broker.state == "Ongoing":
            # The epoch grows by two if the last partition was added with transactions V2, and else by one.
            for epochs in (1, 2):
                yield replace(self, broker=self._at_broker("PrepareAbort", epochs), committed=False)
        if self.broker.state.startswith("Prepare"):
            yield replace(self, broker=self._at_broker(self.broker.state.replace("Prepare", "Complete")))

    def _init_producer_id(self) -> Iterator["Scenario"]:
        if self.broker.state.startswith("Complete"):
            yield replace(self, broker=self._at_broker("Empty", 1, -1))
            participation = self.participation
            epochs = 0 if participation is None else self.broker.producer_epoch - participation.producer_epoch
            if self.raises_epoch and self.committed and epochs == 1:
                # It names the epoch that the producer itself has ended.
                yield replace(self, broker=self._at_broker("Empty", 0, -1))


@pytest.mark.parametrize("raises_epoch", [False, True])
def test_in_every_sequence_of_events_the_implied_outcome_is_the_true_one(raises_epoch: bool) -> None:
    seen: set[tuple[TransactionDescription, TransactionPhase | None, bool | None]] = set()
    reached: set[tuple[str, bool | None]] = set()
    frontier = [Scenario(raises_epoch=raises_epoch)]
    while frontier:
        scenario = frontier.pop()
        state = (
            scenario.broker,
            None if scenario.participation is None else scenario.participation.phase,
            scenario.committed,
        )
        if state in seen or scenario.broker.producer_epoch > 6:
            continue
        seen.add(state)
        if scenario.participation is not None:
            implied = outcome(scenario.participation, scenario.broker)
            reached.add((scenario.broker.state, implied))
            epochs_ahead = scenario.broker.producer_epoch - scenario.participation.producer_epoch
            is_unclear = raises_epoch and scenario.broker.state == "Empty" and epochs_ahead > 1
            assert implied is (False if is_unclear else scenario.committed), state
        frontier.extend(scenario.next())
    assert {("Ongoing", None), ("PrepareCommit", True), ("CompleteCommit", True), ("Empty", True)} <= reached
    assert {("PrepareAbort", False), ("CompleteAbort", False), ("Empty", False)} <= reached
