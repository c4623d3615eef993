"""A backlog in a running job: it is read in pieces and shown, and only members that have stopped are expelled.

:mod:`tests.bench.outages.backlog` plays the same with a million requests, :mod:`.test_in_pieces` without Spark.
"""

import re
from pathlib import Path

import pytest

from streaming.embedded.broker import EmbeddedBroker
from tests.bench.outages.backlog import WORKED_OFF, Outage, play
from tests.support.coordinator_process import QUICK
from tests.support.parameters.long_tests import mostly_long

PIECES = {
    **QUICK,
    "max-requests-per-batch": 1_000,
    "response-partitions": 1,
    "group.initial.rebalance.delay.ms": 1_000,
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("state_partitions", mostly_long([1, 4], [4]))
def test_live_members_keep_their_groups_while_the_job_works_a_backlog_off(
    broker: EmbeddedBroker, tmp_path: Path, state_partitions: int
) -> None:
    settings = {**PIECES, "state-partitions": state_partitions, "request-partitions": state_partitions}
    figures = play(broker, tmp_path, Outage(groups=8, members=3, requests=20_000, settings=settings), print)
    assert (figures.live_members_expelled, figures.live_members) == (0, 21)
    assert (figures.stopped_members_expelled, figures.stopped_members) == (3, 3)
    # How far it is in between depends on the machine: tests/job/monitoring/test_backlog.py has those lines.
    ends = [re.fullmatch(WORKED_OFF + r": ([\d,]+) requests in [\d,.]+ s", line) for line in figures.lines]
    assert sum(int(end[1].replace(",", "")) for end in ends if end) >= 20_000
