"""Who may send what for which group: nothing unless a rule allows it, and nothing without a signature."""

import pickle

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_logic.apis import APIS
from coordinator_logic.messages import HeartbeatRequest, SetGroupConfigRequest
from streaming.contract.identity import Signer
from streaming.contract.rights.group_acls import (
    EVERYTHING_SIGNED,
    OPERATIONS,
    GroupAcl,
    GroupAcls,
    operation_of,
    refusal_reason,
)
from streaming.contract.rights.table import Operation

ALICE, BOB, EVERY_USER = "User:alice", "User:bob", "User:*"
ON_GROUPS = ("Read", "Describe", "Delete", "DescribeConfigs", "AlterConfigs")

texts = st.text("abc-*", min_size=1, max_size=4)
operations = st.sampled_from([Operation(name) for name in ON_GROUPS])
rules = st.builds(
    GroupAcl,
    principal=st.sampled_from([ALICE, BOB, EVERY_USER]),
    group=texts,
    operations=st.lists(st.sampled_from([*ON_GROUPS, "All"]), min_size=1, max_size=2).map(tuple),
    pattern_type=st.sampled_from(["literal", "prefixed"]),
)


def allowed(principal: str, group: str, *names: str, pattern_type: str = "literal") -> GroupAcl:
    rule = {"principal": principal, "group": group, "operations": names, "pattern-type": pattern_type}
    return msgspec.convert(rule, GroupAcl)


def reads(acls: GroupAcls, principal: str | None, group_id: str, signer: Signer | None = Signer.PRINCIPAL) -> bool:
    return acls.may_send(signer, principal, Operation.READ, group_id)


def test_without_a_rule_nothing_is_allowed() -> None:
    assert not reads(GroupAcls(()), ALICE, "billing", Signer.GATEWAY)


def test_a_literal_rule_is_for_its_principal_and_its_group_only() -> None:
    acls = GroupAcls((allowed(ALICE, "billing", "Read"),))
    assert reads(acls, ALICE, "billing")
    assert reads(acls, ALICE, "billing", Signer.GATEWAY)
    assert not reads(acls, BOB, "billing")
    assert not reads(acls, ALICE, "billing-2")
    assert not reads(acls, "User:alice2", "billing")


def test_a_prefixed_rule_is_for_every_group_that_begins_so() -> None:
    acls = GroupAcls((allowed(ALICE, "billing-", "Read", pattern_type="prefixed"),))
    assert reads(acls, ALICE, "billing-")
    assert reads(acls, ALICE, "billing-2")
    assert not reads(acls, ALICE, "billing")
    assert not reads(acls, ALICE, "my-billing-2")


def test_a_star_is_every_group_and_every_user_unless_it_is_prefixed() -> None:
    assert reads(GroupAcls((allowed(ALICE, "*", "Read"),)), ALICE, "any")
    assert reads(GroupAcls((allowed(EVERY_USER, "billing", "Read"),)), BOB, "billing")
    assert not reads(GroupAcls((allowed(ALICE, "*", "Read", pattern_type="prefixed"),)), ALICE, "any")


def test_an_operation_allows_what_it_implies_in_kafka() -> None:
    implied = {
        "Read": {"Read", "Describe"},
        "Describe": {"Describe"},
        "Delete": {"Delete", "Describe"},
        "DescribeConfigs": {"DescribeConfigs"},
        "AlterConfigs": {"AlterConfigs", "DescribeConfigs"},
        "All": set(ON_GROUPS),
    }
    for given_one, expected in implied.items():
        acls = GroupAcls((allowed(ALICE, "g", given_one),))
        found = {one for one in ON_GROUPS if acls.may_send(Signer.PRINCIPAL, ALICE, Operation(one), "g")}
        assert found == expected, given_one


def test_what_only_gateways_send_is_allowed_to_them_in_any_name_and_to_nobody_else() -> None:
    acls = GroupAcls((allowed(ALICE, "*", "All"),))
    action = Operation.CLUSTER_ACTION
    assert acls.may_send(Signer.GATEWAY, BOB, action, "g")
    assert not acls.may_send(Signer.PRINCIPAL, ALICE, action, "g")
    assert not acls.may_send(None, ALICE, action, "g")


def test_a_gateway_may_do_everything_in_its_own_name_and_nothing_in_that_of_a_client_without_rights() -> None:
    acls = GroupAcls(())
    assert reads(acls, "Gateway:gateway", "g", Signer.GATEWAY)
    assert not reads(acls, "Gateway:gateway", "g", Signer.PRINCIPAL)
    assert not reads(acls, "User:gateway", "g", Signer.GATEWAY)


@given(st.lists(rules), operations, texts)
def test_nobody_may_do_anything_without_a_signature_or_a_name(
    found: list[GroupAcl], operation: Operation, group: str
) -> None:
    acls = GroupAcls((*found, *EVERYTHING_SIGNED.rules))
    assert acls.may_send(Signer.PRINCIPAL, ALICE, operation, group)
    assert not acls.may_send(None, ALICE, operation, group)
    assert not acls.may_send(Signer.GATEWAY, None, operation, group)


@given(st.lists(rules), st.sampled_from([ALICE, BOB]), operations, texts)
def test_a_request_is_allowed_if_one_rule_allows_it_and_the_order_does_not_matter(
    found: list[GroupAcl], principal: str, operation: Operation, group: str
) -> None:
    def fits(rule: GroupAcl) -> bool:
        of_group = group.startswith(rule.group) if rule.pattern_type == "prefixed" else rule.group in (group, "*")
        return of_group and rule.principal in (principal, EVERY_USER) and rule.allows(operation, group)

    expected = any(map(fits, found))
    for order in (found, found[::-1]):
        assert GroupAcls(tuple(order)).may_send(Signer.PRINCIPAL, principal, operation, group) == expected


@given(st.lists(rules), rules, st.sampled_from([ALICE, BOB]), operations, texts)
def test_another_rule_takes_nothing_away(
    found: list[GroupAcl], another: GroupAcl, principal: str, operation: Operation, group: str
) -> None:
    before = GroupAcls(tuple(found)).may_send(Signer.GATEWAY, principal, operation, group)
    assert GroupAcls((*found, another)).may_send(Signer.GATEWAY, principal, operation, group) >= before


def test_every_api_has_an_operation_that_kafka_has_for_groups_or_for_the_cluster() -> None:
    assert OPERATIONS.keys() == APIS.keys()
    assert set(OPERATIONS.values()) <= {Operation(name) for name in ON_GROUPS} | {Operation.CLUSTER_ACTION}


def test_a_request_for_a_groups_configuration_alters_it_only_with_values() -> None:
    assert operation_of("SetGroupConfig", SetGroupConfigRequest("g")) is Operation.DESCRIBE_CONFIGS
    changed = SetGroupConfigRequest("g", {"consumer.session.timeout.ms": None})
    assert operation_of("SetGroupConfig", changed) is Operation.ALTER_CONFIGS
    assert operation_of("Heartbeat", HeartbeatRequest("g", 1, "m")) is Operation.READ


@pytest.mark.parametrize(
    ("signer", "operation", "reason"),
    [
        (None, Operation.READ, "the request has no valid signature, without which this coordinator takes none"),
        (Signer.PRINCIPAL, Operation.CLUSTER_ACTION, "only gateways may send this request"),
        (Signer.GATEWAY, Operation.READ, "User:alice is not allowed Read on group 'g'"),
    ],
)
def test_a_refused_sender_reads_what_it_lacks(signer: Signer | None, operation: Operation, reason: str) -> None:
    assert refusal_reason(signer, ALICE, operation, "g") == reason


def test_rules_reach_a_worker_unchanged_and_are_read_there_once() -> None:
    acls = GroupAcls((allowed(ALICE, "billing-", "Read", pattern_type="prefixed"), allowed(EVERY_USER, "*", "All")))
    sent = pickle.dumps(acls)
    assert pickle.loads(sent) == acls
    assert pickle.loads(sent) is pickle.loads(sent)
