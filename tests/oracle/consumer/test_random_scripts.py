"""The same random scripts in each run against Kafka's own manager; ``make oracle-consumer`` runs any number of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pytest

from coordinator_logic.assignors.server import Partitions, SubscribedMember
from coordinator_logic.groups.consumer.rebalance import targets
from tests.oracle.consumer.judge import Judge
from tests.oracle.consumer.lockstep import check, compare
from tests.oracle.consumer.scripts import play, replay

SEED, SCRIPTS, LENGTH = 7_000_000, 300, 60
SCRIPTS_AGAINST_A_FAULT = 40


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    """Kafka's group manager in a JVM of its own."""
    with Judge() as process:
        yield process


@pytest.mark.jvm
def test_random_scripts_agree_with_kafkas_manager(judge: Judge) -> None:
    for seed in range(SEED, SEED + SCRIPTS):
        difference = check(judge, seed, LENGTH)
        assert difference is None, f"script {seed}\n{difference.text()}"


def assign_nothing(members: Sequence[SubscribedMember], partition_counts: Mapping[str, int]) -> dict[str, Partitions]:
    return {member.member_id: {} for member in members}


@pytest.mark.jvm
def test_a_fault_is_found(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "SERVER_ASSIGNORS", {"range": assign_nothing})
    assert any(check(judge, seed, LENGTH) for seed in range(SEED, SEED + SCRIPTS_AGAINST_A_FAULT))


@pytest.mark.jvm
def test_an_answer_that_was_changed_is_a_difference(judge: Judge) -> None:
    played = play(SEED, LENGTH)
    changed = replace(played, answers=[*played.answers[:-1], {**played.answers[-1], "error": 999}])
    difference = compare(judge, changed)
    assert difference is not None
    assert difference.number == len(played.commands) - 1


def test_a_seed_plays_the_same_script_and_its_commands_can_be_replayed() -> None:
    played = play(SEED, LENGTH)
    assert play(SEED, LENGTH) == played
    assert play(SEED + 1, LENGTH) != played
    assert replay(played.commands) == played
