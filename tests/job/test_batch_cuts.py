"""Cutting the log into batches differently changes nothing that the operator writes.

:mod:`tests.logic.test_properties` says so of the logic, this module of everything between a record's bytes and the
state column: the same responses, journal, rejects and state, and the same last entry in the directory. Two things are
excluded, as docs/deviations.md says: a batch whose time is later than a record that it has not read (by more than the
allowance, for deadlines that have it), and an answer to a JoinGroup that is late.
"""

from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.events import Request
from coordinator_logic.messages import RequestEnvelope
from coordinator_logic.timing.sessions import late_answer_ms
from streaming.contract.topics import TopicNames
from streaming.job.group_batch.processing import Outcome, process
from streaming.job.group_batch.settings import Settings
from streaming.job.group_batch.state_row import StateRow
from streaming.job.rows.records import KafkaRecord, Row
from tests.logic.driver import GROUP_ID
from tests.logic.strategies import STORIES, Move
from tests.logic.test_properties import played
from tests.support.properties import examples

ALLOWANCE_MS = 500
LATE_ANSWER_MS = late_answer_ms(batch_interval_ms=450)
MOST_RECORDS = 8
"""In one of the batches that the log is cut into."""

TOPICS = TopicNames()


class Written(NamedTuple):
    """Everything that the operator has written for a log; ``responses`` are by correlation id."""

    responses: dict[bytes | None, Row]
    journal: list[Row]
    rejects: list[Row]
    directory: bytes | None
    state: bytes | None


def record_of(request: Request) -> KafkaRecord:
    """The record with which a client would have sent the request."""
    address = request.address
    envelope = RequestEnvelope(
        api=address.api,
        version=address.version,
        correlation_id=address.correlation_id,
        reply_partition=address.reply_partition,
        body=msgspec.Raw(msgspec.json.encode(request.body)),
        client_id=request.client_id,
        client_host=request.client_host,
    )
    return KafkaRecord(*request.place, GROUP_ID.encode(), msgspec.json.encode(envelope))


def with_nonsense(records: Sequence[KafkaRecord], chance: Random) -> Iterator[KafkaRecord]:
    """The records, with some that are no requests between them."""
    for record in records:
        yield record
        if chance.random() < 0.1:
            yield record._replace(partition=record.partition + 1, value=b"nonsense")


class Playback:
    """The operator on a log, called as Spark calls it, with cuts by chance that are legal."""

    def __init__(self, configuration: Settings, records: Sequence[KafkaRecord], end: int) -> None:
        self._configuration = configuration
        self._records = records
        self._end = end
        self._rows: list[Row] = []
        self._state: StateRow | None = None
        self._time = 0
        self._read = 0
        self._call_next_by: int | None = None
        self.batches = 0

    def in_one_batch(self) -> Written:
        """Process the whole log in one batch."""
        self._call(len(self._records), self._end)
        return self._written()

    def in_batches(self, chance: Random, slack_ms: int) -> Written:
        """Process the log in batches whose times are at most ``slack_ms`` later than the first unread record.

        The batch after one that answered a JoinGroup is never late.
        """
        while self._read < len(self._records) or self._time < self._end:
            first = self._time if self._call_next_by is None else min(self._time + 1, self._end)
            upto, earliest, latest = chance.choice(list(self._legal_batches(first, slack_ms)))
            self._call(upto, chance.choice((earliest, latest, chance.randint(earliest, latest))))
        return self._written()

    def _legal_batches(self, first: int, slack_ms: int) -> Iterator[tuple[int, int, int]]:
        """Up to which record a batch may read, and the earliest and the latest time that it may then have."""
        ceiling = self._end if self._call_next_by is None else min(self._end, self._call_next_by)
        for upto in range(self._read, len(self._records) + 1):
            is_rest = upto == len(self._records)
            latest = ceiling if is_rest else min(ceiling, self._records[upto].timestamp + slack_ms)
            earliest = first if upto == self._read else max(first, self._records[upto - 1].timestamp)
            if earliest > ceiling:
                return
            if earliest <= latest:
                yield upto, earliest, latest
                if upto >= self._read + MOST_RECORDS:
                    return

    def _call(self, upto: int, time: int) -> Outcome:
        outcome = process(self._configuration, GROUP_ID, self._records[self._read : upto], self._state, time)
        self._rows += outcome.rows
        self._state, self._time, self._read = outcome.state, time, upto
        wants_next_batch = outcome.wake_at is not None and outcome.wake_at <= time
        self._call_next_by = time + LATE_ANSWER_MS if wants_next_batch else None
        self.batches += 1
        return outcome

    def _written(self) -> Written:
        # A last batch makes every cut end with one that answers no JoinGroup.
        self._call(len(self._records), self._end + 1)
        by_topic: dict[str, list[Row]] = {}
        for row in self._rows:
            # The wait in a measure is counted until the batch, and so depends on the cut.
            by_topic.setdefault(row.topic, []).append(row._replace(measure=None))
        responses = by_topic.get(TOPICS.responses, [])
        assert len({row.key for row in responses}) == len(responses), "a request was answered twice"
        directory = by_topic.get(TOPICS.directory, [])
        return Written(
            {row.key: row for row in responses},
            by_topic.get(TOPICS.journal, []),
            by_topic.get(TOPICS.rejects, []),
            directory[-1].value if directory else None,
            None if self._state is None else self._state.packed(),
        )


@pytest.mark.parametrize(
    ("delay_ms", "slack_ms"), [(3_000, 0), (0, ALLOWANCE_MS)], ids=["initial delay", "late by the allowance"]
)
@given(
    moves=STORIES,
    seed=st.integers(0, 2**32 - 1),
    tail_ms=st.sampled_from([0, 499, 2_000, 8_000, 100_000]),
)
@examples(80)
def test_cutting_the_log_into_batches_differently_changes_nothing(
    delay_ms: int, slack_ms: int, moves: list[Move], seed: int, tail_ms: int
) -> None:
    config = CoordinatorConfig(
        group_min_session_timeout_ms=10,
        group_initial_rebalance_delay_ms=delay_ms,
        expiry_allowance_ms=ALLOWANCE_MS,
        offsets_retention_minutes=1,
        offsets_retention_check_interval_ms=45_000,
        late_answer_ms=LATE_ANSWER_MS,
    )
    chance = Random(seed)
    log = played(moves, group_initial_rebalance_delay_ms=delay_ms).log
    records = list(with_nonsense([record_of(request) for request in log], chance))
    end = records[-1].timestamp + slack_ms + tail_ms
    configuration = Settings(TOPICS, response_partitions=4, config=config)
    whole = Playback(configuration, records, end).in_one_batch()
    for _ in range(3):
        playback = Playback(configuration, records, end)
        assert playback.in_batches(chance, slack_ms) == whole
        event("several batches" if playback.batches > 2 else "one batch")
    event("a group is left" if whole.state is not None else "no group is left")
