"""The ACLs of roles: the table's rights, with principals and with the names of one cluster."""

import shlex
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from streaming.contract.rights.table import OF_USERS, ROLES, Kind, Operation, Right
from streaming.contract.topics import TopicNames

SAME_PRINCIPAL = {"standby": "job"}
"""Roles that have the principal of another one, unless they are given their own."""

TOOL = "kafka-acls.sh"

TOOL_OPTIONS = {Kind.TOPIC: "--topic", Kind.GROUP: "--group", Kind.TRANSACTIONAL_ID: "--transactional-id"}


@dataclass(frozen=True)
class Resource:
    """What an ACL is about: one name, every name (``*``), or all names that begin with ``name``."""

    kind: Kind
    name: str
    is_prefix: bool = False

    @property
    def pattern(self) -> str:
        """The pattern's type, as Kafka's tools name it."""
        return "prefixed" if self.is_prefix else "literal"


@dataclass(frozen=True)
class Acl:
    """One ACL that allows something, with the roles that need it and what for."""

    principal: str
    resource: Resource
    operation: Operation
    roles: tuple[str, ...]
    purpose: str


def acls_of(
    roles: Iterable[str],
    names: TopicNames,
    principals: Mapping[str, str],
    of_users: Mapping[Kind, Sequence[str]],
) -> list[Acl]:
    """The ACLs that these roles need, each once for a principal.

    Args:
        roles: Keys of the table.
        names: The names of the coordinator's topics.
        principals: By role, such as ``User:job``; by default the role's own name.
        of_users: The users' own topics, groups and transactional ids; ``billing-*`` is a prefix. Without any of a kind,
            only roles that take every name have rights to them.
    """
    acls: dict[tuple[str, Resource, Operation], Acl] = {}
    for role in roles:
        principal = principal_of(role, principals)
        for right in ROLES[role].rights:
            for resource in resources_of(right, names, of_users, takes_every=ROLES[role].takes_every):
                key = principal, resource, right.operation
                before = acls.get(key)
                if before is None:
                    acls[key] = Acl(*key, (role,), right.purpose)
                elif role not in before.roles and ROLES[role] is not ROLES[before.roles[0]]:
                    acls[key] = Acl(*key, (*before.roles, role), f"{before.purpose}; {right.purpose}")
    return [acl for acl in acls.values() if acl.resource.name == OF_USERS or not _is_implied(acl, acls)]


def _is_implied(acl: Acl, acls: Container[tuple[str, Resource, Operation]]) -> bool:
    """Whether the same principal has the same right to every name."""
    return (acl.principal, Resource(acl.resource.kind, OF_USERS), acl.operation) in acls


def principal_of(role: str, principals: Mapping[str, str]) -> str:
    """The principal of a role."""
    if role not in principals and role in SAME_PRINCIPAL:
        return principal_of(SAME_PRINCIPAL[role], principals)
    name = principals.get(role, role)
    return name if ":" in name else f"User:{name}"


def resources_of(
    right: Right, names: TopicNames, of_users: Mapping[Kind, Sequence[str]], *, takes_every: bool
) -> list[Resource]:
    """The resources of a right; none if it is one to the users' own, and no name is given."""
    if not right.is_of_users:
        return [Resource(right.kind, right.named(names))]
    patterns = of_users.get(right.kind) or ((OF_USERS,) if takes_every else ())
    return [
        Resource(right.kind, each[:-1], is_prefix=True)
        if each.endswith("*") and each != OF_USERS
        else Resource(right.kind, each)
        for each in patterns
    ]


def command_lines(acls: Iterable[Acl], bootstrap_servers: str, command_config: str | None = None) -> list[str]:
    """The same as calls of Kafka's own tool, one for each principal and resource."""
    operations: dict[tuple[str, Resource], list[Operation]] = {}
    for acl in acls:
        operations.setdefault((acl.principal, acl.resource), []).append(acl.operation)
    lines = []
    for (principal, resource), allowed in operations.items():
        words = [TOOL, "--bootstrap-server", bootstrap_servers]
        words += ["--command-config", command_config] if command_config else []
        words += ["--add", "--allow-principal", principal]
        for operation in allowed:
            words += ["--operation", operation]
        words += [TOOL_OPTIONS[resource.kind], resource.name]
        words += ["--resource-pattern-type", resource.pattern] if resource.is_prefix else []
        lines.append(shlex.join(words))
    return lines
