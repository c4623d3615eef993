"""A broker's rules of access, evaluated as its StandardAuthorizer evaluates them. Pure: no Kafka here.

* A rule matches a resource by its literal name, by a prefix or by ``*``; a principal by its name or by ``User:*``; a
  host by its address or by ``*``; an operation by itself, or as ``All``.
* A matching Deny wins over everything. Without one, a matching Allow is needed; whoever may read, write, delete or
  alter, may describe.
* Super users need no rule. A resource about which there is no rule at all is open to all if the brokers say so
  (``allow.everyone.if.no.acl.found``).

Source: KIP-11, KIP-290, KIP-801.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import NamedTuple

__all__ = ["Acls", "Operation", "Resource", "Rule"]

WILDCARD = "*"
ANY_PRINCIPAL = "User:*"
CLUSTER_NAME = "kafka-cluster"


class Resource(Enum):
    """What rules are about, by Kafka's codes."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5


class Operation(Enum):
    """What a principal may do, by Kafka's codes."""

    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


_IMPLYING = {
    Operation.DESCRIBE: {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
    Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
}

GROUP_OPERATIONS = (
    Operation.READ,
    Operation.DELETE,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
"""The operations that there are on a group."""


class Rule(NamedTuple):
    """One access control entry; ``prefixed``: ``name`` is the beginning of the names that it is about."""

    resource: Resource
    name: str
    prefixed: bool
    principal: str
    host: str
    operation: Operation
    allows: bool


class Acls:
    """All rules of a cluster, at one moment."""

    def __init__(
        self, rules: Iterable[Rule], super_users: frozenset[str] = frozenset(), *, open_without_rules: bool = False
    ) -> None:
        self._super_users = super_users
        self._open_without_rules = open_without_rules
        self._literal: dict[tuple[Resource, str], list[Rule]] = defaultdict(list)
        self._prefixed: dict[tuple[Resource, str], list[Rule]] = defaultdict(list)
        for rule in rules:
            place = self._prefixed if rule.prefixed else self._literal
            place[rule.resource, rule.name].append(rule)
        self._prefix_lengths = {
            resource: sorted({len(name) for kind, name in self._prefixed if kind is resource}) for resource in Resource
        }

    def allows(self, principal: str, host: str, operation: Operation, resource: Resource, name: str) -> bool:
        """Whether a principal may do this from that host (an address). ``principal`` as in ``User:alice``."""
        if principal in self._super_users:
            return True
        rules = list(self._rules_about(resource, name))
        if not rules:
            return self._open_without_rules
        about_caller = [
            rule for rule in rules if rule.principal in (principal, ANY_PRINCIPAL) and rule.host in (host, WILDCARD)
        ]
        if any(not rule.allows and rule.operation in (operation, Operation.ALL) for rule in about_caller):
            return False
        sufficient = {operation, Operation.ALL} | _IMPLYING.get(operation, set())
        return any(rule.allows and rule.operation in sufficient for rule in about_caller)

    def _rules_about(self, resource: Resource, name: str) -> Iterator[Rule]:
        yield from self._literal.get((resource, name), ())
        if name != WILDCARD:
            yield from self._literal.get((resource, WILDCARD), ())
        for length in self._prefix_lengths[resource]:
            if length <= len(name):
                yield from self._prefixed.get((resource, name[:length]), ())


def operation_bits(operations: Iterable[Operation]) -> int:
    """Operations as Kafka packs them into ``authorizedOperations`` (KIP-430): a bit for each, by its code."""
    return sum(1 << operation.value for operation in operations)
