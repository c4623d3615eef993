"""The tables of the roles, of their rights, and of the operations that requests need, in docs/security.md."""

from streaming.contract.rights.group_acls import OPERATIONS
from streaming.contract.rights.table import ROLES, Kind, Right

USERS_OWN = {
    Kind.TOPIC: "the users' topics",
    Kind.GROUP: "the users' groups",
    Kind.TRANSACTIONAL_ID: "the users' transactional ids",
}


def roles_markdown() -> str:
    """A row for each role."""
    return "| role | who has it |\n|---|---|\n" + "".join(f"| {name} | {role.what} |\n" for name, role in ROLES.items())


def rights_markdown() -> str:
    """A row for each right of each role; a standby has those of the job."""
    head = "| role | resource | operation | without it, it cannot |\n|---|---|---|---|\n"
    return head + "".join(
        f"| {name} | {_resource(right)} | {right.operation} | {right.purpose} |\n"
        for name, role in ROLES.items()
        if name != "standby"
        for right in role.rights
    )


def operations_markdown() -> str:
    """A row for each operation on groups, with the requests that need it."""
    apis: dict[str, list[str]] = {}
    for api, operation in OPERATIONS.items():
        apis.setdefault(operation, []).append(api)
    head = "| operation on the group | requests |\n|---|---|\n"
    return head + "".join(f"| {operation} | {', '.join(names)} |\n" for operation, names in sorted(apis.items()))


def _resource(right: Right) -> str:
    return USERS_OWN[right.kind] if right.is_of_users else f"{right.kind} `{right.name}`"
