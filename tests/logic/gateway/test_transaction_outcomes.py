"""What a broker's state says of the transaction that a line belongs to: judged by a broker that knows the truth."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from streaming.gateway.transactions.participation import (
    Described,
    Participation,
    Phase,
    is_forgotten,
    new_participation,
    outcome,
    outcome_after_init,
)

BEGAN = Described("Ongoing", 7, 3, 1_000)
LINE = new_participation("t", "g", BEGAN)
NOTHING_YET = Described("Empty", 7, 0, -1)


@pytest.mark.parametrize(
    ("described", "committed"),
    [
        (BEGAN, None),
        (BEGAN._replace(state="PrepareCommit"), True),
        (BEGAN._replace(state="CompleteCommit"), True),
        (BEGAN._replace(state="PrepareAbort"), False),
        (BEGAN._replace(state="CompleteAbort"), False),
        # It took too long.
        (BEGAN._replace(state="PrepareAbort", producer_epoch=4), False),
        (BEGAN._replace(state="CompleteAbort", producer_epoch=5), False),
        # An abort that is not in the broker's log yet, and may never be.
        (BEGAN._replace(producer_epoch=4), None),
        # Told by a coordinator that does not know of this transaction yet.
        (BEGAN._replace(state="CompleteCommit", transaction_start_time_ms=900), None),
        (BEGAN._replace(state="CompleteAbort", producer_epoch=2, transaction_start_time_ms=900), None),
        (BEGAN._replace(state="Empty", transaction_start_time_ms=-1), None),
        # The same producer's next one: this one's end was told before.
        (BEGAN._replace(transaction_start_time_ms=2_000), False),
        # Nobody who knows of this producer.
        (Described("Empty", 8, 0, -1), None),
        (None, None),
    ],
)
@pytest.mark.parametrize("phase", Phase)
def test_the_state_decides_whatever_was_intended(
    described: Described | None, committed: bool | None, phase: Phase
) -> None:
    assert outcome(LINE.in_phase(phase), described) is committed


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("epochs_ahead", [1, 2, 3])
def test_when_the_producer_has_begun_anew_the_intention_counts_unless_something_was_aborted(
    phase: Phase, epochs_ahead: int
) -> None:
    described = Described("Empty", 7, 3 + epochs_ahead, -1)
    committed = phase is Phase.COMMITTING and epochs_ahead == 1
    assert outcome(LINE.in_phase(phase), described) is committed
    assert outcome_after_init(LINE.in_phase(phase), 7, 3 + epochs_ahead) is committed
    assert outcome_after_init(LINE.in_phase(phase), 8, 3 + epochs_ahead) is False


def test_what_no_broker_knows_is_given_up_after_a_day() -> None:
    day = 24 * 3_600_000
    for described in (None, Described("Ongoing", 8, 3, 1_000)):
        assert not is_forgotten(LINE, described, LINE.transaction_start_time_ms + day)
        assert is_forgotten(LINE, described, LINE.transaction_start_time_ms + day + 1)
    assert not is_forgotten(LINE, BEGAN, LINE.transaction_start_time_ms + 2 * day)


def test_ids_are_no_producers_and_never_the_same() -> None:
    ids = {new_participation("t", "g", BEGAN).id for _ in range(1_000)}
    assert len(ids) == 1_000
    assert min(ids) >= 1 << 62
    assert max(ids) < 1 << 63


# ---- all that can happen to a producer's transactions, as a broker of transactions V1 does it -------------------


@dataclass(frozen=True)
class World:
    """A coordinator's state of one transactional id, and a line of one of its transactions with what became of it."""

    broker: Described = NOTHING_YET
    clock: int = 0
    line: Participation | None = None
    truth: bool | None = None

    def next(self) -> Iterator["World"]:
        """Everything that can happen next. Producers and gateways do what the package's description says."""
        yield from self._begin()
        yield from self._intend()
        yield from self._end()
        yield from self._time_passes()
        yield from self._begin_anew()

    def _at_broker(self, state: str, epochs: int = 0, start: int | None = None) -> Described:
        began = self.broker.transaction_start_time_ms if start is None else start
        return self.broker._replace(
            state=state, producer_epoch=self.broker.producer_epoch + epochs, transaction_start_time_ms=began
        )

    def _begin(self) -> Iterator["World"]:
        # A client begins only when its last EndTxn was answered, and that is when the line has gone.
        if self.broker.state in ("Empty", "CompleteCommit", "CompleteAbort") and self.line is None:
            clock = self.clock + 1
            began = self._at_broker("Ongoing", start=clock)
            yield replace(self, broker=began, clock=clock, line=new_participation("t", "g", began))

    def _intend(self) -> Iterator["World"]:
        if self.line is not None and self.line.phase is Phase.ONGOING:
            for phase in (Phase.COMMITTING, Phase.ABORTING):
                yield replace(self, line=self.line.in_phase(phase))

    def _end(self) -> Iterator["World"]:
        line = self.line
        if line is None or line.phase is Phase.ONGOING or self.broker.producer_epoch != line.producer_epoch:
            return
        committed = line.phase is Phase.COMMITTING
        if self.broker.state == "Ongoing":
            yield replace(
                self, broker=self._at_broker("PrepareCommit" if committed else "PrepareAbort"), truth=committed
            )

    def _time_passes(self) -> Iterator["World"]:
        if self.broker.state == "Ongoing":
            # The cluster's transaction version decides whether it is one epoch or two.
            for epochs in (1, 2):
                yield replace(self, broker=self._at_broker("PrepareAbort", epochs), truth=False)
        if self.broker.state.startswith("Prepare"):
            yield replace(self, broker=self._at_broker(self.broker.state.replace("Prepare", "Complete")))

    def _begin_anew(self) -> Iterator["World"]:
        if self.broker.state.startswith("Complete"):
            yield replace(self, broker=self._at_broker("Empty", 1, -1))


def test_whatever_happens_a_settled_transaction_is_settled_as_it_ended() -> None:
    seen: set[tuple[Described, Phase | None, bool | None]] = set()
    reached: set[tuple[str, bool | None]] = set()
    frontier = [World()]
    while frontier:
        world = frontier.pop()
        state = world.broker, None if world.line is None else world.line.phase, world.truth
        if state in seen or world.broker.producer_epoch > 6:
            continue
        seen.add(state)
        if world.line is not None:
            said = outcome(world.line, world.broker)
            reached.add((world.broker.state, said))
            assert said is world.truth, state
        frontier.extend(world.next())
    assert {("Ongoing", None), ("PrepareCommit", True), ("CompleteCommit", True), ("Empty", True)} <= reached
    assert {("PrepareAbort", False), ("CompleteAbort", False), ("Empty", False)} <= reached
