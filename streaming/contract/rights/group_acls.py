"""Which principal may send which request for which group: Kafka's ACLs of groups, for senders on the request topic.

Operations are those that a broker asks its authorizer for. Source: KafkaApis, AclEntry and StandardAuthorizer of Kafka
4.3. Nothing is allowed that no rule allows, and no rule denies.
"""

from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Annotated, Any, Literal

import msgspec

from coordinator_logic import apis
from coordinator_logic.messages import RequestBody, SetGroupConfigRequest
from streaming.contract.identity import EVERY_USER, GATEWAY, USER, Signer
from streaming.contract.rights.table import Operation

EVERY_GROUP = "*"

OPERATIONS: Mapping[str, Operation] = {
    apis.FIND_COORDINATOR.name: Operation.DESCRIBE,
    apis.JOIN_GROUP.name: Operation.READ,
    apis.SYNC_GROUP.name: Operation.READ,
    apis.HEARTBEAT.name: Operation.READ,
    apis.LEAVE_GROUP.name: Operation.READ,
    apis.CONSUMER_GROUP_HEARTBEAT.name: Operation.READ,
    apis.OFFSET_COMMIT.name: Operation.READ,
    apis.TXN_OFFSET_COMMIT.name: Operation.READ,
    apis.OFFSET_FETCH.name: Operation.DESCRIBE,
    apis.DESCRIBE_GROUPS.name: Operation.DESCRIBE,
    apis.CONSUMER_GROUP_DESCRIBE.name: Operation.DESCRIBE,
    apis.DELETE_GROUPS.name: Operation.DELETE,
    apis.OFFSET_DELETE.name: Operation.DELETE,
    apis.WRITE_TXN_MARKERS.name: Operation.CLUSTER_ACTION,
    # As a member says with its heartbeats which topics there are.
    apis.TOPICS_DESCRIBED.name: Operation.READ,
    # As OffsetDelete, but for topics to which the group subscribes.
    apis.TOPICS_DELETED.name: Operation.DELETE,
    # Kafka's tools send OffsetCommit instead.
    apis.RESET_OFFSETS.name: Operation.READ,
    apis.TAKE_OVER_OFFSETS.name: Operation.CLUSTER_ACTION,
    apis.SET_GROUP_CONFIG.name: Operation.ALTER_CONFIGS,
    apis.READ_QUARANTINED_GROUP.name: Operation.DESCRIBE,
    apis.DROP_QUARANTINED_GROUP.name: Operation.DELETE,
}
"""The operation that each API needs on the group; ClusterAction is for gateways alone, as in Kafka for brokers."""

_IMPLIED_BY: Mapping[Operation, frozenset[str]] = {
    Operation.DESCRIBE: frozenset({Operation.READ, Operation.DELETE}),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.ALTER_CONFIGS}),
}

GroupOperation = Literal["Read", "Describe", "Delete", "DescribeConfigs", "AlterConfigs", "All"]
"""The operations that Kafka has for groups, under the names that its tools take."""

Principal = Annotated[
    str, msgspec.Meta(pattern=rf"^{USER}[^\s].*\Z", description=f"{USER}NAME, or {EVERY_USER} for every principal")
]


GroupPattern = Annotated[
    str,
    msgspec.Meta(min_length=1, description=f"a group id, a prefix of group ids, or {EVERY_GROUP} for every group"),
]


class GroupAcl(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", omit_defaults=True):
    """A rule: what a principal may do with a group, with every group (``*``), or with all whose ids begin so."""

    principal: Principal
    group: GroupPattern
    operations: tuple[GroupOperation, ...]
    pattern_type: Literal["literal", "prefixed"] = "literal"

    def allows(self, operation: Operation, group_id: str) -> bool:
        """Whether the rule allows an operation on a group, whoever asks."""
        if self.pattern_type == "prefixed":
            fits = group_id.startswith(self.group)
        else:
            fits = self.group in (group_id, EVERY_GROUP)
        implied_by = _IMPLIED_BY.get(operation, frozenset())
        return fits and any(one in ("All", operation) or one in implied_by for one in self.operations)


def operation_of(api: str, body: RequestBody) -> Operation:
    """The operation that a request needs. SetGroupConfig without a change only reads the configuration."""
    if isinstance(body, SetGroupConfigRequest) and not body.configs:
        return Operation.DESCRIBE_CONFIGS
    return OPERATIONS[api]


class GroupAcls(msgspec.Struct, frozen=True, dict=True):
    """Rules, in any order.

    They travel to the workers with every batch: as JSON, which a worker reads once.
    """

    rules: tuple[GroupAcl, ...]

    def may_send(self, signer: Signer | None, principal: str | None, operation: Operation, group_id: str) -> bool:
        """Whether a request may pass that needs this operation on the group, given who has signed it.

        Gateways may send everything in their own name, and the end of a transaction in that of its client, whom the
        brokers have authorized for the transactional id.
        """
        if signer is None or principal is None:
            return False
        if signer is Signer.GATEWAY and (operation is Operation.CLUSTER_ACTION or principal.startswith(GATEWAY)):
            return True
        if operation is Operation.CLUSTER_ACTION or not principal.startswith(USER):
            return False
        rules = self._by_principal.get(principal, ()), self._by_principal.get(EVERY_USER, ())
        return any(rule.allows(operation, group_id) for part in rules for rule in part)

    @cached_property
    def _by_principal(self) -> Mapping[str, list[GroupAcl]]:
        found: defaultdict[str, list[GroupAcl]] = defaultdict(list)
        for rule in self.rules:
            found[rule.principal].append(rule)
        # A plain dict, so that no question about a principal adds to it.
        return dict(found)

    def __reduce__(self) -> tuple[Any, ...]:
        return _read_once, (msgspec.json.encode(self),)


@lru_cache(maxsize=32)
def _read_once(encoded: bytes) -> GroupAcls:
    return msgspec.json.decode(encoded, type=GroupAcls)


EVERYTHING_SIGNED = GroupAcls((GroupAcl(principal=EVERY_USER, group=EVERY_GROUP, operations=("All",)),))
"""The rules that refuse nothing but what is not signed."""


def refusal_reason(signer: Signer | None, principal: str | None, operation: Operation, group_id: str) -> str:
    """Why :meth:`GroupAcls.may_send` refuses a request, for its sender."""
    if signer is None:
        return "the request has no valid signature, without which this coordinator takes none"
    if operation is Operation.CLUSTER_ACTION:
        return "only gateways may send this request"
    return f"{principal} is not allowed {operation} on group {group_id!r}"
