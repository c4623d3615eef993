"""The tables of the roles and of their rights in docs/security.md."""

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


def _resource(right: Right) -> str:
    return USERS_OWN[right.kind] if right.is_of_users else f"{right.kind} `{right.name}`"
