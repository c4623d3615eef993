"""Plans: where a reset moves each partition, what that replays, and what restores and undoes it."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_logic.embedded_protocols import TopicPartition
from coordinator_logic.errors import Error
from coordinator_logic.messages import ResetOffsetsRequest, ResetOffsetsResponse
from streaming.explain.offsets.changes import changes_of, last_reset
from streaming.explain.offsets.plan import (
    Log,
    Plan,
    Position,
    clone,
    differences,
    is_of_namesake,
    position,
    restoration,
    undoing,
)
from streaming.explain.offsets.targets import ResetTarget, TargetKind, plan_of_positions, reset_plan
from streaming.explain.time_travel.group_history import group_at
from tests.logic.driver import Answer, Driven
from tests.logic.strategies import STORIES, Move, Story
from tests.support.properties import examples

P0, P1 = TopicPartition("topic", 0), TopicPartition("topic", 1)
LOGS = {P0: Log(10, 100), P1: Log(0, 50)}
NOW = {P0: Position(60, 3, "mine")}
NIGHT = 1_700_000_000_000


def positions(driven: Driven) -> dict[TopicPartition, Position]:
    """The committed offsets of a group, none if it does not exist."""
    offsets = driven.group.committed_offsets() if driven.exists else ()
    return {TopicPartition(topic, number): position(committed) for topic, number, committed in offsets}


def send(driven: Driven, plan: Plan) -> Answer[ResetOffsetsResponse]:
    """Send a plan to a group without members, or force it."""
    request = plan.request()
    body = ResetOffsetsRequest(request.group_id, request.topics, force=True, lists_all=request.lists_all)
    return driven.send("ResetOffsets", body)


# ---- targets ---------------------------------------------------------------------------------------------------


class Expected(NamedTuple):
    """What becomes of the partition with offset 60 in a log from 10 to 100."""

    target: int
    replayed: int
    skipped: int
    lag: int
    note: str = ""


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (ResetTarget(TargetKind.EARLIEST), Expected(10, 50, 0, 90)),
        (ResetTarget(TargetKind.LATEST), Expected(100, 0, 40, 0)),
        (ResetTarget(TargetKind.OFFSET, 70), Expected(70, 0, 10, 30)),
        (ResetTarget(TargetKind.OFFSET, 5), Expected(10, 50, 0, 90, "5 is before the first offset")),
        (ResetTarget(TargetKind.OFFSET, 101), Expected(100, 0, 40, 0, "101 is after the last offset")),
        (ResetTarget(TargetKind.SHIFT, -20), Expected(40, 20, 0, 60)),
        (ResetTarget(TargetKind.SHIFT, -90), Expected(10, 50, 0, 90, "-30 is before the first offset")),
        (ResetTarget(TargetKind.TIME, NIGHT), Expected(33, 27, 0, 67)),
    ],
)
def test_a_target_gives_an_offset_in_the_log_and_what_it_means(target: ResetTarget, expected: Expected) -> None:
    (planned,) = reset_plan("g", [P0], target, NOW, LOGS, {P0: 33}).offsets
    assert planned.target == Position(expected.target)
    assert (planned.replayed, planned.skipped, planned.lag) == expected[1:4]
    assert (planned.current, planned.note) == (60, expected.note)


def test_a_time_after_the_last_record_is_the_end_of_the_log() -> None:
    (planned,) = reset_plan("g", [P0], ResetTarget(TargetKind.TIME, NIGHT), NOW, LOGS, {P0: None}).offsets
    assert planned.target == Position(100)


def test_a_partition_without_an_offset_is_set_but_cannot_be_shifted() -> None:
    (planned,) = reset_plan("g", [P1], ResetTarget(TargetKind.EARLIEST), NOW, LOGS, {}).offsets
    assert (planned.current, planned.target, planned.replayed, planned.lag) == (None, Position(0), None, 50)
    assert reset_plan("g", [P1], ResetTarget(TargetKind.SHIFT, 1), NOW, LOGS, {}).offsets == []


def test_a_file_keeps_epoch_and_metadata() -> None:
    wanted = {P0: Position(20, 2, "from a file"), P1: Position(999)}
    first, second = plan_of_positions("g", wanted, NOW, LOGS).offsets
    assert first.target == Position(20, 2, "from a file")
    assert (second.target, second.note) == (Position(50), "999 is after the last offset")


def test_what_the_log_no_longer_has_is_not_replayed() -> None:
    (planned,) = restoration("g", {P0: Position(3)}, {P0: Position(5)}, LOGS, is_complete=True).offsets
    assert (planned.replayed, planned.lag) == (0, 90)
    assert planned.note == "outside of the log, which has 10 to 100"


# ---- plans through the coordinator -----------------------------------------------------------------------------


def test_a_plan_is_refused_with_the_commits_that_came_in_between(driven: Driven) -> None:
    driven.commit(offsets={P0: 60})
    plan = reset_plan("the-group", [P0], ResetTarget(TargetKind.EARLIEST), positions(driven), LOGS, {})
    driven.commit(offsets={P0: 61})
    answer = send(driven, plan)
    assert answer.error is Error.INVALID_UPDATE_VERSION
    assert differences(plan.request(), answer.body) == [(P0, 60, 61)]
    assert positions(driven) == {P0: Position(61)}


def test_a_partition_that_gets_its_first_offset_in_between_refuses_a_restoration(driven: Driven) -> None:
    driven.commit(offsets={P0: 60})
    plan = restoration("the-group", positions(driven), positions(driven), {}, is_complete=True)
    driven.commit(offsets={P1: 1})
    answer = send(driven, plan)
    assert differences(plan.request(), answer.body) == [(P1, -1, 1)]


def test_a_restoration_from_an_incomplete_journal_deletes_nothing() -> None:
    plan = restoration("g", {P1: Position(1)}, NOW, LOGS, is_complete=False)
    assert [planned.partition for planned in plan.offsets] == [1]
    assert not plan.lists_all


def test_a_clone_has_the_offsets_of_its_original(driven: Driven) -> None:
    offsets = {P0: Position(60, 3, "mine"), P1: Position(7)}
    assert send(driven, clone("the-group", offsets, LOGS)).error is Error.NONE
    assert positions(driven) == offsets
    assert send(driven, clone("the-group", offsets, LOGS)).error is Error.INVALID_UPDATE_VERSION


def test_an_undo_says_which_offsets_have_moved_since_the_reset(driven: Driven) -> None:
    driven.commit(offsets={P0: 60, P1: 7})
    driven.reset_offsets({P0: 0, P1: 0})
    driven.commit(offsets={P0: 5})
    plan = undoing("the-group", last_reset(changes_of(driven.journal)), positions(driven), {})
    assert [(planned.current, planned.target, planned.note) for planned in plan.offsets] == [
        (5, Position(60), "was 0 after the reset"),
        (0, Position(7), ""),
    ]


@given(moves=STORIES, which=st.integers(0, 1_000))
@examples(120)
def test_a_restoration_brings_back_exactly_what_was_committed_then(moves: list[Move], which: int) -> None:
    driven = Driven()
    story = Story(driven)
    at: dict[int, dict[TopicPartition, Position]] = {}
    for move in moves:
        story.play(move)
        at[driven.now] = positions(driven)
    time = sorted(at)[which % len(at)]
    found = group_at(driven.journal, time).group
    then = {} if found is None else {TopicPartition(t, n): position(o) for t, n, o in found.committed_offsets()}
    assert then == at[time]
    plan = restoration(driven.group_id, then, positions(driven), {}, is_complete=True)
    answer = send(driven, plan)
    if answer.error is Error.NONE:
        assert positions(driven) == then
    else:
        assert answer.error in (Error.REBALANCE_IN_PROGRESS, Error.UNSTABLE_OFFSET_COMMIT)


@given(moves=STORIES, offsets=st.lists(st.integers(-1, 20), min_size=3, max_size=3))
@examples(120)
def test_an_undo_undoes_a_reset_and_a_second_one_does_it_again(moves: list[Move], offsets: list[int]) -> None:
    driven = Driven()
    story = Story(driven)
    for move in moves:
        story.play(move)
    # Until the group is at rest, or has gone.
    driven.sleep(400_000)
    driven.sleep(400_000)
    for producer in (0, 1):
        driven.end_transaction(commit=True, producer_id=producer)
    before = positions(driven)
    driven.reset_offsets({("topic", number): offset for number, offset in enumerate(offsets)}, force=True)
    after = positions(driven)
    if before == after:
        return
    for expected in (before, after):
        plan = undoing(driven.group_id, last_reset(changes_of(driven.journal)), positions(driven), {})
        assert send(driven, plan).error is Error.NONE
        assert positions(driven) == expected


# ---- topics that were created again ----------------------------------------------------------------------------

OLD, NEW = "kQXTr5ZaQ4aTOGxdwzcvBw", "yf4HLMwkTNqR31X-kvqSOQ"


def test_a_plan_sets_offsets_of_the_topic_whose_log_it_has_seen() -> None:
    logs = {P0: Log(10, 100, NEW), P1: Log(0, 50)}
    plan = plan_of_positions("g", {P0: Position(60), P1: Position(5, topic_id=OLD)}, {}, logs)
    assert [(topic.name, topic.topic_id) for topic in plan.request().topics] == [("topic", NEW), ("topic", OLD)]


def test_an_offset_of_a_deleted_topic_is_none_of_its_namesake() -> None:
    log = Log(10, 100, NEW)
    assert is_of_namesake(Position(60, topic_id=OLD), log)
    assert not is_of_namesake(Position(60, topic_id=NEW), log)
    assert not is_of_namesake(Position(60), log), "it may be of this topic"
    assert not is_of_namesake(Position(60, topic_id=OLD), None), "there may be no such topic now"
    assert not is_of_namesake(Position(60, topic_id=OLD), Log(10, 100)), "the brokers may have no ids"
