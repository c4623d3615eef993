"""The operator with one group, called as Spark calls it but without Spark."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.types import StructType

from coordinator_logic import snapshot
from coordinator_logic.committed_offsets import StoredOffsets
from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.events import Request
from coordinator_logic.group import Group
from coordinator_logic.states import State
from coordinator_logic.step import StepResult, step
from coordinator_logic.timing.sessions import late_answer_ms
from streaming.contract.topics import TopicNames
from streaming.job.group_batch import processing
from streaming.job.group_batch.processing import Outcome, process
from streaming.job.group_batch.settings import Settings
from streaming.job.group_batch.starts import Start
from streaming.job.group_batch.state_row import StateRow
from streaming.job.lifecycle.query_start import protocol_config
from streaming.job.operator import INPUT_COLUMNS, GroupOperator
from streaming.job.options import JobOptions
from streaming.job.profiles import PROFILES, ProfileName
from streaming.job.rows.records import KafkaRecord, Row, SizeLimits
from streaming.job.topics.layout import Partitions
from tests.support.parts import classic
from tests.support.request_events import commit, envelope

NOW = 1_000_000
TOPICS = TopicNames()
CONFIG = CoordinatorConfig(group_initial_rebalance_delay_ms=0, late_answer_ms=2_000)
SETTINGS = Settings(TOPICS, 4, CONFIG, starts=(Start(started_at=NOW - 50),))
KEPT_ROW = Path(__file__).parent / "state_rows" / "join-answered.hex"


def records(*requests: dict[str, Any] | bytes, group_id: str = "g", at: int = NOW) -> list[KafkaRecord]:
    values = [value if isinstance(value, bytes) else json.dumps(value).encode() for value in requests]
    return [KafkaRecord(at + i, 0, i, group_id.encode(), value) for i, value in enumerate(values)]


def join(group_id: str = "g", member_id: str = "") -> dict[str, Any]:
    body = {
        "groupId": group_id,
        "sessionTimeoutMs": 10_000,
        "rebalanceTimeoutMs": 10_000,
        "memberId": member_id,
        "protocolType": "consumer",
        "protocols": [{"name": "range", "metadata": ""}],
    }
    return envelope("JoinGroup", 3, body)


def values(rows: Sequence[Row], topic: str) -> list[Any]:
    return [row.value and json.loads(row.value) for row in rows if row.topic == topic]


def error_codes(outcome: Outcome) -> list[int]:
    return [response["errorCode"] for response in values(outcome.rows, TOPICS.responses)]


def test_the_same_batch_gives_the_same_bytes() -> None:
    batch = records(join(), join(), commit("g", 5), b"nonsense", envelope("Fetch", 1, {}))
    first = process(SETTINGS, "g", batch, None, NOW + 100)
    assert first.state is not None
    assert process(SETTINGS, "g", batch, None, NOW + 100) == first
    more = records(join(), at=NOW + 200)
    assert process(SETTINGS, "g", more, first.state, NOW + 300) == process(SETTINGS, "g", more, first.state, NOW + 300)


def test_rejects_come_first_then_answers_journal_and_directory() -> None:
    outcome = process(SETTINGS, "g", records(join(), b"nonsense"), None, NOW + 100)
    order = list(dict.fromkeys(row.topic for row in outcome.rows))
    assert order == [TOPICS.rejects, TOPICS.responses, TOPICS.journal, TOPICS.directory]


def test_the_directory_gets_an_entry_for_each_change_and_a_tombstone_for_the_end() -> None:
    first = process(SETTINGS, "g", records(commit("g", 1)), None, NOW + 100)
    assert [line["groupState"] for line in values(first.rows, TOPICS.directory)] == ["Empty"]
    second = process(SETTINGS, "g", records(commit("g", 2), at=NOW + 200), first.state, NOW + 300)
    assert values(second.rows, TOPICS.directory) == []
    delete = envelope("DeleteGroups", 2, {"groupsNames": ["g"]})
    third = process(SETTINGS, "g", records(delete, at=NOW + 400), second.state, NOW + 500)
    assert values(third.rows, TOPICS.directory) == [None]
    assert third.state is None


def test_a_rejected_record_creates_no_group() -> None:
    assert process(SETTINGS, "g", records(b"nonsense"), None, NOW).state is None


def test_a_rejected_record_does_not_delay_a_groups_deadlines() -> None:
    joined = process(SETTINGS, "g", records(join()), None, NOW + 1).state
    stable = process(SETTINGS, "g", [], joined, NOW + 100).state
    late = process(SETTINGS, "g", records(b"nonsense", at=NOW + 60_000), stable, NOW + 60_000)
    assert late.state is not None
    assert classic(snapshot.decode(late.state.snapshot)).members == {}


class TestLateAnswer:
    """The batch at ``NOW + 100`` answers a JoinGroup whose session of 10 s counts from ``NOW``; 2 s later is late."""

    def joined(self) -> Outcome:
        outcome = process(SETTINGS, "g", records(join()), None, NOW + 100)
        assert error_codes(outcome) == [0]
        return outcome

    def members(self, outcome: Outcome) -> int:
        assert outcome.state is not None
        return len(classic(snapshot.decode(outcome.state.snapshot)).members)

    def test_a_group_is_called_again_in_the_batch_after_it_answered_a_join(self) -> None:
        joined = self.joined()
        assert joined.wake_at == NOW + 100
        confirmed = process(SETTINGS, "g", [], joined.state, NOW + 200)
        assert confirmed.wake_at is not None
        assert confirmed.wake_at > NOW + 10_000

    def test_a_member_whose_answer_was_late_has_a_full_session_from_the_batch_after_it(self) -> None:
        late = process(SETTINGS, "g", [], self.joined().state, NOW + 60_000)
        assert self.members(late) == 1
        assert self.members(process(SETTINGS, "g", [], late.state, NOW + 70_499)) == 1
        assert self.members(process(SETTINGS, "g", [], late.state, NOW + 70_500)) == 0

    def test_a_member_whose_answer_was_in_time_is_expelled_after_its_session(self) -> None:
        in_time = process(SETTINGS, "g", [], self.joined().state, NOW + 2_100)
        assert self.members(process(SETTINGS, "g", [], in_time.state, NOW + 10_499)) == 1
        assert self.members(process(SETTINGS, "g", [], in_time.state, NOW + 10_500)) == 0

    def test_a_handed_out_member_id_can_still_be_used_after_a_late_answer(self) -> None:
        handed_out = process(SETTINGS, "g", records(join() | {"version": 9}), None, NOW + 100)
        (answer,) = values(handed_out.rows, TOPICS.responses)
        used = records(join(member_id=answer["body"]["memberId"]) | {"version": 9}, at=NOW + 60_100)
        outcome = process(SETTINGS, "g", used, handed_out.state, NOW + 60_200)
        again = process(
            SETTINGS, "g", used, process(SETTINGS, "g", [], handed_out.state, NOW + 60_000).state, NOW + 60_200
        )
        assert (error_codes(outcome), error_codes(again)) == ([0], [0])

    @pytest.mark.usefixtures("defect")
    def test_counts_in_a_batch_with_a_request_that_raises(self) -> None:
        spread = [*records(commit("g", 666), join()), *records(commit("g", 1), at=NOW + 4_000)]
        answered = process(SETTINGS, "g", spread, None, NOW + 5_000)
        assert error_codes(answered) == [-1, 0, 25]
        assert answered.wake_at == NOW + 5_000
        late = process(SETTINGS, "g", [], answered.state, NOW + 60_000)
        assert self.members(process(SETTINGS, "g", [], late.state, NOW + 70_499)) == 1

    def test_a_row_of_an_earlier_release_is_read_with_its_times(self) -> None:
        """The release before this one wrote the time of the answer in front of the snapshot."""
        kept = bytes.fromhex(KEPT_ROW.read_text())
        stored = StateRow.unpacked(kept)
        assert (stored.packed(), stored.join_answered_at) == (kept, NOW + 100)
        before = snapshot.decode(stored.snapshot)
        late = process(SETTINGS, "g", [], stored, NOW + 60_000)
        assert late.rows == [], "no member rejoins, and the group does not change"
        assert late.state is not None
        after = snapshot.decode(late.state.snapshot)
        assert (classic(after).members, after.generation, after.state) == (
            classic(before).members,
            before.generation,
            before.state,
        )
        assert self.members(process(SETTINGS, "g", [], late.state, NOW + 70_499)) == 1
        in_time = process(SETTINGS, "g", [], stored, NOW + 200)
        assert self.members(process(SETTINGS, "g", [], in_time.state, NOW + 10_500)) == 0
        still_late = StateRow(stored.snapshot, sessions_from=NOW + 60_000)
        assert self.members(process(SETTINGS, "g", [], still_late, NOW + 70_499)) == 1


class TestQuarantine:
    UNREADABLE = StateRow(b"\xff from another release")

    def test_answers_not_available_and_keeps_the_bytes(self) -> None:
        outcome = process(SETTINGS, "g", records(commit("g", 1), join()), self.UNREADABLE, NOW)
        answers = values(outcome.rows, TOPICS.responses)
        assert answers[0]["body"]["topics"][0]["partitions"][0]["errorCode"] == 15
        assert answers[1]["body"]["errorCode"] == 15
        assert outcome.state is not None
        assert outcome.state.snapshot == self.UNREADABLE.snapshot
        assert outcome.wake_at is None

    def test_begins_when_offsets_are_used_that_cannot_be_decoded(self) -> None:
        whole = process(SETTINGS, "g", records(commit("g", 1)), None, NOW).state
        assert whole is not None
        group = snapshot.decode(whole.snapshot)
        group.offsets = StoredOffsets(dict.fromkeys(group.offsets, b"damaged"), 1)
        damaged = StateRow(snapshot.encode(group))
        outcome = process(SETTINGS, "g", records(commit("g", 2)), damaged, NOW)
        assert values(outcome.rows, TOPICS.responses)[0]["body"]["topics"][0]["partitions"][0]["errorCode"] == 15
        (reject,) = values(outcome.rows, TOPICS.rejects)
        assert "its offsets are damaged" in reject["reason"]
        assert outcome.state is not None
        assert outcome.state.snapshot == damaged.snapshot

    def test_is_reported_once_a_batch_that_had_requests(self) -> None:
        outcome = process(SETTINGS, "g", records(commit("g", 1), join()), self.UNREADABLE, NOW)
        (reject,) = values(outcome.rows, TOPICS.rejects)
        assert "format version 255" in reject["reason"]
        assert values(process(SETTINGS, "g", [], self.UNREADABLE, NOW).rows, TOPICS.rejects) == []


@pytest.fixture
def defect(monkeypatch: pytest.MonkeyPatch) -> None:
    """A logic that raises on commits of offset 666, after it has changed the group in place."""

    def defective(
        group_id: str, group: Group | None, requests: Sequence[Request], batch_time: int, **rest: Any
    ) -> StepResult:
        result = step(group_id, group, requests, batch_time, **rest)
        if any(b"666" in json.dumps(entry.record, default=str).encode() for entry in result.journal):
            raise RuntimeError("a defect")
        return result

    monkeypatch.setattr(processing, "step", defective)


@pytest.mark.usefixtures("defect")
class TestDefect:
    def test_fails_only_the_request_that_triggers_it(self) -> None:
        outcome = process(SETTINGS, "g", records(commit("g", 1), commit("g", 666), commit("g", 2)), None, NOW + 100)
        assert error_codes(outcome) == [0, -1, 0]
        assert outcome.state is not None
        group = snapshot.decode(outcome.state.snapshot)
        assert [committed.offset for _, _, committed in group.committed_offsets()] == [2]

    def test_is_reported_with_its_traceback(self) -> None:
        outcome = process(SETTINGS, "g", records(commit("g", 666)), None, NOW + 100)
        (reject,) = values(outcome.rows, TOPICS.rejects)
        assert "RuntimeError: a defect" in reject["reason"]
        assert (reject["errorCode"], reject["offset"]) == (-1, 0)
        assert outcome.state is None

    def test_gives_the_same_bytes_again(self) -> None:
        batch = records(commit("g", 1), commit("g", 666))
        assert process(SETTINGS, "g", batch, None, NOW) == process(SETTINGS, "g", batch, None, NOW)


def test_a_defect_in_a_timer_is_reported_and_the_timer_is_retried_later(monkeypatch: pytest.MonkeyPatch) -> None:
    joined = process(SETTINGS, "g", records(join()), None, NOW + 1).state
    stored = process(SETTINGS, "g", [], joined, NOW + 2).state

    def broken(*_arguments: object, **_keywords: object) -> StepResult:
        raise RuntimeError("a defect")

    monkeypatch.setattr(processing, "step", broken)
    outcome = process(SETTINGS, "g", [], stored, NOW + 500_000)
    assert outcome.state == stored
    assert outcome.wake_at == NOW + 500_000 + processing.RETRY_AFTER_DEFECT_MS
    assert len(values(outcome.rows, TOPICS.rejects)) == 1


def test_a_static_member_that_returns_to_an_empty_group_gets_an_error() -> None:
    """Only a defect can produce such a group; the request must not stay parked."""
    static = join() | {"version": 5}
    static["body"]["groupInstanceId"] = "instance"
    joined = process(SETTINGS, "g", records(static), None, NOW + 1).state
    assert joined is not None
    group = snapshot.decode(joined.snapshot)
    group.part.state = State.EMPTY
    corrupt = StateRow(snapshot.encode(group))
    outcome = process(SETTINGS, "g", records(static, at=NOW + 10), corrupt, NOW + 20)
    assert error_codes(outcome) == [-1]
    (reject,) = values(outcome.rows, TOPICS.rejects)
    assert "IllegalState: group 'g' is Empty and has the static member 'instance'" in reject["reason"]
    assert outcome.state is not None
    assert list(classic(snapshot.decode(outcome.state.snapshot)).members) == list(classic(group).members)


@pytest.mark.parametrize(
    "partitions",
    [
        [{"partitionIndex": 0, "committedOffset": 2, "committedMetadata": "x" * 2_000}],
        # They are stored in fewer bytes, and decoded in more.
        [{"partitionIndex": each, "committedOffset": 2} for each in range(50)],
    ],
    ids=["long metadata", "many offsets"],
)
def test_a_request_that_would_exceed_the_snapshot_limit_changes_nothing(partitions: list[dict[str, object]]) -> None:
    settings = Settings(TOPICS, 4, CONFIG, limits=SizeLimits(snapshot=1_000))
    small = process(settings, "g", records(commit("g", 1)), None, NOW + 1)
    large = commit("g", 2)
    large["body"]["topics"][0]["partitions"] = partitions
    outcome = process(settings, "g", records(large, at=NOW + 10), small.state, NOW + 20)
    assert error_codes(outcome) == [-1]
    assert outcome.state is not None
    assert small.state is not None
    assert list(snapshot.decode(outcome.state.snapshot).committed_offsets()) == list(
        snapshot.decode(small.state.snapshot).committed_offsets()
    )


def test_a_batch_of_any_profile_may_start_a_second_after_its_interval_without_being_late() -> None:
    for profile in PROFILES.values():
        assert late_answer_ms(profile.trigger_interval_ms) >= profile.trigger_interval_ms + 1_000


@pytest.mark.parametrize("profile", PROFILES)
def test_a_heartbeat_of_a_changing_group_has_two_batches_time_for_its_answer(profile: ProfileName) -> None:
    options = JobOptions(bootstrap_servers="unused", checkpoint="unused", profile=profile)
    config = protocol_config(options, Partitions(requests=4, responses=4, directory=1))
    assert config.group_consumer_reconciling_heartbeat_interval_ms >= 2 * PROFILES[profile].trigger_interval_ms
    assert config.group_consumer_reconciling_heartbeat_interval_ms >= 1_000


def test_a_batch_counts_from_the_last_start_before_it() -> None:
    settings = Settings(TOPICS, 4, starts=tuple(Start(started_at=time) for time in (100, 200, 300)))
    assert [settings.started_at(time) for time in (99, 100, 299, 300, 10_000)] == [0, 100, 200, 300, 300]


def called_by_spark(frames: list[pd.DataFrame], stored: tuple[Any, ...] | None) -> tuple[pd.DataFrame, GroupState]:
    state = GroupState(
        optionalValue=stored,  # type: ignore[arg-type]
        batchProcessingTimeMs=NOW + 100,
        eventTimeWatermarkMs=-1,
        timeoutConf=GroupStateTimeout.ProcessingTimeTimeout,
        hasTimedOut=False,
        watermarkPresent=False,
        defined=stored is not None,
        updated=False,
        removed=False,
        timeoutTimestamp=-1,
        keyAsUnsafe=b"",
        valueSchema=StructType([]),
    )
    (rows,) = GroupOperator(SETTINGS)(("g",), iter(frames), state)
    return rows, state


def frame(batch: list[KafkaRecord]) -> pd.DataFrame:
    return pd.DataFrame(batch, columns=list(INPUT_COLUMNS)).assign(groupId="g")


def test_records_are_handled_in_log_order_in_whatever_order_spark_delivers_them() -> None:
    batch = records(*(commit("g", offset) for offset in range(6)))
    ordered, state = called_by_spark([frame(batch)], None)
    shuffled, other = called_by_spark([frame(batch[3:]), frame(batch[2::-1])], None)
    pd.testing.assert_frame_equal(ordered, shuffled)
    assert state.get == other.get


def stored_by(outcome: Outcome) -> tuple[Any, ...]:
    assert outcome.state is not None
    return (outcome.state.packed(),)


def test_state_and_timeout_are_set_for_spark() -> None:
    _, state = called_by_spark([frame(records(join()))], None)
    group = snapshot.decode(StateRow.unpacked(*state.get).snapshot)
    assert (group.state.value, group.part.protocol_type, group.generation) == ("CompletingRebalance", "consumer", 1)
    assert state._timeout_timestamp > NOW + 100
    _, removed = called_by_spark(
        [frame(records(envelope("DeleteGroups", 2, {"groupsNames": ["g"]})))],
        stored_by(process(SETTINGS, "g", records(commit("g", 1), at=NOW - 10), None, NOW)),
    )
    assert not removed.exists
