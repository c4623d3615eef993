"""Whatever bytes a record or the stored state holds, ``process`` raises nothing, and every row fits its topic."""

import base64
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coordinator_logic import snapshot
from coordinator_logic.committed_offsets import StoredOffsets
from coordinator_logic.config import CoordinatorConfig
from streaming.contract.topics import LONGEST_GROUP_ID_BYTES, MAX_ROW_BYTES, TopicNames
from streaming.job.group_batch.processing import Outcome, process
from streaming.job.group_batch.settings import Settings
from streaming.job.group_batch.state_row import StateRow
from streaming.job.rows.records import MIN_ROW_BYTES, KafkaRecord, Row, SizeLimits
from tests.support.request_events import commit, dumped, envelope

NOW = 1_000_000
TOPICS = TopicNames()
CONFIG = CoordinatorConfig(group_initial_rebalance_delay_ms=0)
SETTINGS = Settings(TOPICS, 4, CONFIG)
SMALL = SizeLimits(request=150_000, row=MIN_ROW_BYTES, snapshot=400_000, answers=300_000)
"""Limits that a few kilobytes of a test can exceed."""


def as_the_query_passes_it(limits: SizeLimits, offset: int, key: bytes | None, value: bytes | None) -> KafkaRecord:
    """A record of the topic after the query's projection."""
    key, value = (
        column[: limits.request] + str(len(column)).encode() if column and len(column) > limits.request else column
        for column in (key, value)
    )
    return KafkaRecord(NOW + offset, 0, offset, key, value)


def group_of(record: KafkaRecord) -> str:
    return (record.key or b"")[: LONGEST_GROUP_ID_BYTES + 1].decode(errors="replace")


def processed(value: bytes | None, key: bytes | None = b"g", stored: StateRow | None = None) -> Outcome:
    record = as_the_query_passes_it(SETTINGS.limits, 0, key, value)
    return process(SETTINGS, group_of(record), [record], stored, NOW + 100)


def values(outcome: Outcome, topic: str) -> list[Any]:
    return [json.loads(row.value or b"null") for row in outcome.rows if row.topic == topic]


def size(row: Row) -> int:
    return len(row.key or b"") + len(row.value or b"")


def join(group_id: str = "g", metadata: bytes = b"", **fields: Any) -> dict[str, Any]:
    body = {
        "groupId": group_id,
        "sessionTimeoutMs": 10_000,
        "rebalanceTimeoutMs": 10_000,
        "memberId": "",
        "protocolType": "consumer",
        "protocols": [{"name": "range", "metadata": base64.b64encode(metadata).decode()}],
    }
    return envelope("JoinGroup", 3, body | fields)


def test_a_value_beyond_the_limit_is_cut_rejected_and_answered() -> None:
    request = join(metadata=bytes(4_900_000))
    value = dumped(request)
    outcome = processed(value)
    (answer,) = values(outcome, TOPICS.responses)
    (reject,) = values(outcome, TOPICS.rejects)
    assert (answer["correlationId"], answer["api"]) == (request["correlationId"], "JoinGroup")
    assert (answer["errorCode"], answer["body"]) == (42, None)
    assert (
        answer["errorMessage"] == reject["reason"] == f"the value has {len(value)} bytes; a request has at most 4194304"
    )
    assert base64.b64decode(reject["value"]) == value[:4_194_304]
    assert reject["valueCutFrom"] == len(value)
    assert outcome.state is None


@pytest.mark.parametrize(
    "prefix",
    [
        b"",
        b"[",
        b'{"correlationId": "c", "replyPartition": 9, "body": "',
        b'{"correlationId": "\\ud800", "replyPartition": 0, "body": "',
        b'{"correlationId": "c", "replyPartition": 1e999, "body": "',
        b'{"correlationId": "c", "replyPartition": true, "body": "',
        b'{"body": ' + b"[" * 99_999 + b'"correlationId": "c", "replyPartition": 0, "x": "',
        b'{1: 2, "correlationId": "c", "replyPartition": 0, "body": "',
    ],
)
def test_a_cut_value_whose_address_cannot_be_read_is_rejected_without_an_answer(prefix: bytes) -> None:
    outcome = processed(prefix + bytes(5_000_000))
    assert values(outcome, TOPICS.responses) == []
    (reject,) = values(outcome, TOPICS.rejects)
    assert reject["valueCutFrom"] == len(prefix) + 5_000_000


def test_a_key_beyond_the_limit_is_cut_rejected_and_answered() -> None:
    outcome = processed(dumped(commit("g", 1)), key=b"k" * 9_000_000)
    (answer,) = values(outcome, TOPICS.responses)
    (row,) = (row for row in outcome.rows if row.topic == TOPICS.rejects)
    assert answer["errorCode"] == 42
    assert answer["errorMessage"] == "the key has 9000000 bytes; a group id has at most 32767"
    assert row.key == b"k" * 4_194_304
    assert json.loads(row.value or b"")["keyCutFrom"] == 9_000_000
    assert "valueCutFrom" not in json.loads(row.value or b"")


def test_a_value_that_no_query_has_cut_is_cut_too() -> None:
    (row,) = process(SETTINGS, "g", [KafkaRecord(NOW, 0, 0, b"g", bytes(30_000_000))], None, NOW).rows
    assert (row.topic, size(row) <= MAX_ROW_BYTES) == (TOPICS.rejects, True)
    assert json.loads(row.value or b"")["valueCutFrom"] == 30_000_000


def test_a_dead_letter_whose_value_does_not_fit_keeps_a_prefix() -> None:
    settings = Settings(TOPICS, 4, CONFIG, limits=SizeLimits(request=MAX_ROW_BYTES))
    value = b"\xff" * 7_000_000
    record = as_the_query_passes_it(settings.limits, 0, b"\xfe" * 7_000_000, value)
    (row,) = process(settings, group_of(record), [record], None, NOW).rows
    reject = json.loads(row.value or b"")
    assert size(row) <= MAX_ROW_BYTES
    assert row.key == b"\xfe" * LONGEST_GROUP_ID_BYTES
    assert value.startswith(base64.b64decode(reject["value"]))
    assert (reject["keyCutFrom"], reject["valueCutFrom"]) == (7_000_000, 7_000_000)


def test_a_request_whose_journal_entry_does_not_fit_is_refused_alone() -> None:
    """A commit repeats the topic's name in each of its offsets."""
    large = commit("g", 1)
    large["body"]["topics"] = [
        {"name": "t" * 249, "partitions": [{"partitionIndex": i, "committedOffset": 1} for i in range(30_000)]}
    ]
    records = [
        KafkaRecord(NOW + i, 0, i, b"g", dumped(each)) for i, each in enumerate((commit("g", 1), large, commit("g", 2)))
    ]
    outcome = process(SETTINGS, "g", records, None, NOW + 100)
    assert [answer["errorCode"] for answer in values(outcome, TOPICS.responses)] == [0, -1, 0]
    assert "a record for group-journal has" in values(outcome, TOPICS.responses)[1]["errorMessage"]
    (reject,) = values(outcome, TOPICS.rejects)
    assert base64.b64decode(reject["value"]) == dumped(large)


def test_an_answer_of_a_quarantined_group_that_does_not_fit_is_replaced_by_an_error() -> None:
    describe = envelope("DescribeGroups", 5, {"groups": [""] * 100_000})
    outcome = processed(dumped(describe), stored=StateRow(b"\xff"))
    (answer,) = values(outcome, TOPICS.responses)
    assert (answer["correlationId"], answer["errorCode"]) == (describe["correlationId"], -1)
    assert outcome.state is not None
    assert outcome.state.snapshot == b"\xff"


def test_a_group_answers_no_more_in_a_batch_than_a_worker_can_send() -> None:
    settings = Settings(TOPICS, 4, CONFIG, limits=SizeLimits(answers=1_500_000))
    committed = commit("g", 1)
    committed["body"]["topics"] = [
        {"name": f"topic-{i}", "partitions": [{"partitionIndex": 0, "committedOffset": 1}]} for i in range(5_000)
    ]
    fetch = envelope("OffsetFetch", 8, {"groups": [{"groupId": "g", "topics": None}]})
    requests = [committed, *[fetch] * 5, commit("g", 2)]
    records = [KafkaRecord(NOW + i, 0, i, b"g", dumped(request)) for i, request in enumerate(requests)]
    outcome = process(settings, "g", records, None, NOW + 100)
    answers = values(outcome, TOPICS.responses)
    assert [answer["errorCode"] for answer in answers] == [0, 0, -1, -1, -1, -1, 0]
    assert "the group's answers in this batch exceed 1500000 bytes" in answers[2]["errorMessage"]


def test_state_bytes_that_no_release_has_written_are_quarantined() -> None:
    deep = StateRow(b"\x01" + b"\x91" * 100_000)
    for stored in (StateRow.unpacked(b""), StateRow.unpacked(b"\x01\x02"), deep):
        outcome = processed(dumped(commit("g", 1)), stored=stored)
        (reject,) = values(outcome, TOPICS.rejects)
        assert "is quarantined" in reject["reason"]
        assert outcome.state is not None
        assert outcome.state.snapshot == stored.snapshot


def test_a_deadline_beyond_all_time_does_not_overflow_sparks_timeout() -> None:
    forever = commit("g", 1)
    forever["version"] = 2
    forever["body"]["retentionTimeMs"] = 2**63 - 1
    outcome = processed(dumped(forever))
    assert outcome.wake_at is None or outcome.wake_at < 2**62


TEXTS = st.builds(
    lambda unit, count: unit * count,
    st.sampled_from(["g", "\x00", '"', "\U0001f600", "\ud7ff"]),
    st.sampled_from([0, 1, 100, 40_000, 100_000]),
)
BYTES = st.builds(
    lambda unit, count: unit * count,
    st.binary(min_size=1, max_size=3),
    st.sampled_from([1, 1_000, LONGEST_GROUP_ID_BYTES, 60_000, 200_000]),
)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "api": TEXTS,
        "correlationId": TEXTS,
        "clientId": TEXTS,
        "clientHost": TEXTS,
        "principal": TEXTS,
        "version": st.integers(-1, 10),
        "replyPartition": st.integers(-1, 5),
    },
)
EVENTS = ("TopicsDeleted", "ReadQuarantinedGroup", "DropQuarantinedGroup", "ResetOffsets", "TakeOverOffsets")
KNOWN_GROUP = st.sampled_from(["g", "\x00" * LONGEST_GROUP_ID_BYTES])


@st.composite
def hostile_requests(draw: st.DrawFn) -> tuple[bytes | None, bytes | None]:
    """Key and value of a request that is valid or nearly so, with long texts and many entries."""
    group_id, text, count = draw(KNOWN_GROUP), draw(TEXTS), draw(st.sampled_from([1, 50, 2_000]))
    partitions = [{"partitionIndex": i, "committedOffset": i, "committedMetadata": "m"} for i in range(count)]
    bodies: dict[str, Any] = {
        "JoinGroup": join(group_id, text.encode(), groupInstanceId=draw(st.none() | TEXTS))["body"],
        "LeaveGroup": {"groupId": group_id, "members": [{"memberId": text}] * min(count, 50)},
        "OffsetCommit": commit(group_id, 1)["body"] | {"topics": [{"name": text, "partitions": partitions}]},
        "OffsetFetch": {"groups": [{"groupId": group_id, "topics": None}] * min(count, 50)},
        "DescribeGroups": {"groups": [group_id if len(group_id) == 1 else text] * min(count, 50)},
        "TopicsDeleted": {"topics": [text]},
        "ReadQuarantinedGroup": {"offset": draw(st.integers(-9, 9)), "length": 2**31 - 1},
        "DropQuarantinedGroup": {"reason": text},
        "ResetOffsets": {
            "groupId": group_id,
            "topics": [{"name": text, "partitions": [{"partitionIndex": i, "offset": i - 1} for i in range(count)]}],
            "force": draw(st.booleans()),
            "reason": text,
        },
        "TakeOverOffsets": {"groupId": group_id, "topics": [{"name": text, "partitions": partitions}]},
        "FindCoordinator": {"coordinatorKeys": [text] * 2},
    }
    api = draw(st.sampled_from(sorted(bodies)))
    version = {"JoinGroup": 3, "OffsetFetch": 8, **dict.fromkeys(EVENTS, 0)}.get(api, 5)
    request = envelope(api, version, bodies[api]) | draw(st.just({}) | FIELDS)
    return draw(st.just(group_id.encode()) | BYTES), dumped(request)


def damaged_offsets() -> StateRow:
    whole = processed(dumped(commit("g", 1))).state
    assert whole is not None
    group = snapshot.decode(whole.snapshot)
    group.offsets = StoredOffsets(dict.fromkeys(group.offsets, b"damaged"), 1)
    return StateRow(snapshot.encode(group))


STORED = st.sampled_from([None, processed(dumped(join())).state, damaged_offsets()]) | st.builds(
    StateRow.unpacked, st.binary(max_size=40).map(lambda state: bytes(16) + b"\x01" + state)
)
RECORDS = st.lists(
    st.tuples(st.none() | BYTES, st.none() | BYTES) | hostile_requests() | st.just((b"g", dumped(join()))), max_size=4
)


@given(RECORDS, STORED)
@example([(b"\x00" * 200_000, b"\x00" * 200_000)], None)
def test_process_is_total(contents: list[tuple[bytes | None, bytes | None]], stored: StateRow | None) -> None:
    settings = Settings(TOPICS, 4, CONFIG, limits=SMALL)
    by_group: dict[str, list[KafkaRecord]] = {}
    for offset, (key, value) in enumerate(contents):
        record = as_the_query_passes_it(SMALL, offset, key, value)
        by_group.setdefault(group_of(record), []).append(record)
    for group_id, of_group in by_group.items():
        for batch_time in (NOW + 100, NOW + 60_000):
            outcome = process(settings, group_id, of_group, stored, batch_time)
            assert outcome == process(settings, group_id, of_group, stored, batch_time)
            for row in outcome.rows:
                assert size(row) <= SMALL.row, row.topic
                assert row.value is None or json.loads(row.value)
                assert (row.partition is not None) == (row.topic == TOPICS.responses)
            dead = values(outcome, TOPICS.rejects)
            for record in of_group:
                if len(contents[record.offset][1] or b"") > SMALL.request:
                    (letter,) = [letter for letter in dead if letter["offset"] == record.offset]
                    assert letter["valueCutFrom"] == len(contents[record.offset][1] or b"")
            if outcome.state is not None and not outcome.state.is_quarantined:
                assert len(outcome.state.snapshot) <= SMALL.snapshot
            stored = outcome.state
        stored = None
