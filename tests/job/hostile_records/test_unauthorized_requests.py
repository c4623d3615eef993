"""Requests whose senders may not send them: answered with Kafka's error, counted, and without any effect."""

import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.errors import Error
from coordinator_logic.messages import RequestEnvelope
from streaming.contract.identity import IdentityKeys, signed
from streaming.contract.rights.group_acls import EVERYTHING_SIGNED, GroupAcl, GroupAcls
from streaming.contract.topics import TopicNames
from streaming.job.group_batch.processing import Outcome, process
from streaming.job.group_batch.settings import Settings
from streaming.job.group_batch.state_row import load
from streaming.job.group_batch.steps import DEADLINE_CHECK
from streaming.job.measures import RejectedRecord
from streaming.job.rows.records import KafkaRecord
from tests.support.request_events import commit, dumped, envelope

NOW = 1_000_000
TOPICS = TopicNames()
GATEWAYS_KEY, ALICES_KEY, BOBS_KEY = b"g" * 32, b"a" * 32, b"b" * 32
ALICE, BOB = "User:alice", "User:bob"
KEYS = IdentityKeys((GATEWAYS_KEY,), {ALICE: (ALICES_KEY,), BOB: (BOBS_KEY,)})


def rule(principal: str, group: str, *operations: str) -> GroupAcl:
    fields = {"principal": principal, "group": group, "operations": operations, "pattern-type": "prefixed"}
    return msgspec.convert(fields, GroupAcl)


ACLS = GroupAcls((rule(ALICE, "alices-", "Read"), rule(BOB, "bobs-", "All")))
GUARDED = Settings(TOPICS, 4, identity_keys=KEYS, acls=ACLS)
GROUP = "alices-group"


def sealed(request: dict[str, Any], key: bytes | None, group_id: str = GROUP) -> bytes:
    if key is None:
        return dumped(request)
    return msgspec.json.encode(signed(msgspec.json.decode(dumped(request), type=RequestEnvelope), group_id, key))


def sent(*values: bytes, settings: Settings = GUARDED, group_id: str = GROUP, stored: Any = None) -> Outcome:
    records = [KafkaRecord(NOW + i, 0, i, group_id.encode(), value) for i, value in enumerate(values)]
    return process(settings, group_id, records, stored, NOW + 100)


def values(outcome: Outcome, topic: str) -> list[Any]:
    return [json.loads(row.value or b"") for row in outcome.rows if row.topic == topic]


def error(outcome: Outcome) -> int:
    (answer,) = values(outcome, TOPICS.responses)
    return int(answer["errorCode"])


def alices_commit(offset: int = 5, **fields: object) -> dict[str, Any]:
    return commit(GROUP, offset, **{"principal": ALICE, **fields})


@pytest.mark.parametrize("key", [ALICES_KEY, GATEWAYS_KEY], ids=["its own key", "the key of gateways"])
def test_a_principal_with_a_rule_may_use_its_groups(key: bytes) -> None:
    outcome = sent(sealed(alices_commit(), key))
    assert error(outcome) == Error.NONE
    (created, committed) = values(outcome, TOPICS.journal)
    assert {each["cause"]["claimed"] for each in (created, committed)} == {False}


@pytest.mark.parametrize(
    ("request_value", "reason"),
    [
        (sealed(alices_commit(), None), "no valid signature"),
        (sealed(alices_commit(principal=None), None), "no valid signature"),
        (sealed(alices_commit(), BOBS_KEY), "no valid signature"),
        (sealed(alices_commit(), b"x" * 32), "no valid signature"),
        (sealed(alices_commit(), ALICES_KEY, "alices-other"), "no valid signature"),
        (dumped(json.loads(sealed(alices_commit(), ALICES_KEY)) | {"clientHost": "/10.0.0.9"}), "no valid signature"),
        (sealed(alices_commit(principal=BOB), BOBS_KEY), "User:bob is not allowed Read on group 'alices-group'"),
        (sealed(alices_commit(principal=BOB), GATEWAYS_KEY), "User:bob is not allowed Read on group 'alices-group'"),
        (sealed(alices_commit(principal=None), GATEWAYS_KEY), "None is not allowed Read"),
        (
            sealed(envelope("DeleteGroups", 2, {"groupsNames": [GROUP]}, principal=ALICE), ALICES_KEY),
            "User:alice is not allowed Delete on group 'alices-group'",
        ),
        (
            sealed(envelope("WriteTxnMarkers", 1, {"markers": []}, principal=ALICE), ALICES_KEY),
            "only gateways may send this request",
        ),
    ],
    ids=[
        "unsigned",
        "unsigned and nameless",
        "signed by another tenant",
        "signed by a key of nobody's",
        "signed for another group",
        "changed after it was signed",
        "without a rule",
        "without a rule, through a gateway",
        "nameless, through a gateway",
        "another operation",
        "for gateways only",
    ],
)
def test_all_else_is_answered_counted_and_has_no_effect(request_value: bytes, reason: str) -> None:
    outcome = sent(request_value)
    (answer,) = values(outcome, TOPICS.responses)
    assert answer["errorCode"] == Error.GROUP_AUTHORIZATION_FAILED
    assert reason in answer["errorMessage"]
    (reject,) = values(outcome, TOPICS.rejects)
    assert reject["errorCode"] == Error.GROUP_AUTHORIZATION_FAILED
    assert RejectedRecord("authorization") in [row.measure for row in outcome.rows]
    assert (outcome.state, outcome.wake_at) == (None, None)
    assert {row.topic for row in outcome.rows} == {TOPICS.responses, TOPICS.rejects}


def test_a_refused_request_among_others_changes_nothing_about_them() -> None:
    first, last = sealed(alices_commit(1), ALICES_KEY), sealed(alices_commit(2), ALICES_KEY)
    refused = sealed(alices_commit(99), None)
    plain = sent(first, sealed({"api": "nonsense"}, None), last)
    mixed = sent(first, refused, last)
    assert mixed.state == plain.state
    assert values(mixed, TOPICS.journal) == values(plain, TOPICS.journal)
    later = sent(refused, stored=plain.state)
    assert later.state == sent(stored=plain.state).state
    assert values(later, TOPICS.journal) == []


def test_not_even_the_time_of_a_refused_request_counts() -> None:
    config = CoordinatorConfig(group_initial_rebalance_delay_ms=0, late_answer_ms=1_000)
    settings = replace(GUARDED, config=config, has_deadline_checks=True)
    body = {
        "groupId": GROUP,
        "sessionTimeoutMs": 10_000,
        "rebalanceTimeoutMs": 60_000,
        "memberId": "",
        "protocolType": "consumer",
        "protocols": [{"name": "range", "metadata": ""}],
    }
    join = sealed(envelope("JoinGroup", 3, body, principal=ALICE, correlationId="c"), ALICES_KEY)
    key = GROUP.encode()
    records = [KafkaRecord(NOW, 0, 1, key, join), KafkaRecord(NOW + 50, 0, 2, key, DEADLINE_CHECK)]
    waited_long = KafkaRecord(NOW - 60_000, 1, 0, key, sealed(alices_commit(), None))

    def sessions_from(*read: KafkaRecord) -> int:
        group = load(process(settings, GROUP, read, None, NOW + 100).state)
        assert group is not None
        return group.sessions_from

    assert sessions_from(waited_long, *records) == sessions_from(*records) == 0
    # A late request of alice's own counts: her members could send no heartbeats while it waited.
    assert sessions_from(waited_long._replace(value=sealed(alices_commit(), ALICES_KEY)), *records) == NOW + 100


def test_a_gateway_may_do_in_its_own_name_what_its_clients_may_not() -> None:
    request = envelope("DescribeGroups", 5, {"groups": ["g"]})
    for principal, expected in ("Gateway:g", Error.NONE), ("User:g", Error.GROUP_AUTHORIZATION_FAILED):
        named = request | {"principal": principal}
        assert error(sent(sealed(named, GATEWAYS_KEY, "g"), group_id="g")) == expected


def test_signatures_alone_can_be_required() -> None:
    settings = Settings(TOPICS, 4, identity_keys=KEYS, acls=EVERYTHING_SIGNED)
    assert error(sent(sealed(alices_commit(), ALICES_KEY), settings=settings)) == Error.NONE
    assert error(sent(sealed(alices_commit(principal=BOB), BOBS_KEY), settings=settings)) == Error.NONE
    assert error(sent(sealed(alices_commit(), None), settings=settings)) == Error.GROUP_AUTHORIZATION_FAILED


def test_without_rules_nothing_is_refused() -> None:
    for key in (None, BOBS_KEY, ALICES_KEY):
        assert error(sent(sealed(alices_commit(), key), settings=Settings(TOPICS, 4, identity_keys=KEYS))) == Error.NONE
