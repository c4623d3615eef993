"""``group-coordinator acls``: the minimal ACLs of each role, printed or created."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from streaming.cli.connection import (
    BOOTSTRAP_VARIABLE,
    LOG_NOTHING,
    ClientProperties,
    Timeout,
    TopicPrefix,
    with_options,
)
from streaming.cli.console import OUTPUT_PANEL, USAGE, brokers_option, err, fail, key_values, out, print_json
from streaming.cli.help_output import flag, option
from streaming.cli.usage import taking
from streaming.contract.errors import BrokersFailed
from streaming.contract.option_values import KeyAndValue, one_of
from streaming.contract.output.broker_failures import brokers_failed
from streaming.contract.output.columns import Column
from streaming.contract.output.plain import print_plain
from streaming.contract.output.text import counted
from streaming.contract.rights.acls import Acl, acls_of, command_lines
from streaming.contract.rights.check import ACL_OPERATIONS
from streaming.contract.rights.refusals import is_refusal
from streaming.contract.rights.table import ROLES, Kind
from streaming.contract.topics import TopicNames
from streaming.contract.waits import announcing_waits

PLACEHOLDER = "kafka-1:9092"
"""The brokers of the printed commands, unless an address is given."""

NAMES_PANEL = "Names"
CREATION_PANEL = "Creation"

COLUMNS = (
    *("PRINCIPAL", "RESOURCE", "NAME", "OPERATION", "STATE"),
    *(Column("PATTERN", rank=3), Column("ROLE", rank=2), Column("FOR", rank=1, least=20)),
)

RESOURCE_TYPES = {
    Kind.TOPIC: ResourceType.TOPIC,
    Kind.GROUP: ResourceType.GROUP,
    Kind.TRANSACTIONAL_ID: ResourceType.TRANSACTIONAL_ID,
}


def _known_roles(roles: list[str] | None) -> list[str] | None:
    for role in roles or ():
        if role not in ROLES:
            raise typer.BadParameter(f"{role!r} is not {one_of(ROLES)}")
    return roles


def _of_known_roles(pairs: list[str] | None) -> list[str] | None:
    taking(KeyAndValue)(pairs)
    _known_roles([pair.partition("=")[0] for pair in pairs or ()])
    return pairs


def _names(*names: str, metavar: str, text: str) -> Any:
    return option(*names, metavar=metavar, text=f"{text} billing-* is a prefix. Repeatable.", panel=NAMES_PANEL)


@dataclass(frozen=True, kw_only=True)
class Names:
    """Whose ACLs they are, and for which of the users' own resources."""

    principal: Annotated[
        list[str] | None,
        option(
            metavar="ROLE=PRINCIPAL",
            text="The principal of a role, such as job=User:coordinator; by default User:ROLE. Repeatable.",
            panel=NAMES_PANEL,
            callback=_of_known_roles,
        ),
    ] = None
    topic: Annotated[list[str] | None, _names(metavar="TOPIC", text="The users' topics.")] = None
    group: Annotated[list[str] | None, _names(metavar="GROUP", text="The users' groups.")] = None
    transactional_id: Annotated[list[str] | None, _names(metavar="ID", text="The users' transactional ids.")] = None

    def of_users(self) -> dict[Kind, Sequence[str]]:
        """The users' own resources that are named."""
        return {
            Kind.TOPIC: self.topic or (),
            Kind.GROUP: self.group or (),
            Kind.TRANSACTIONAL_ID: self.transactional_id or (),
        }


@dataclass(frozen=True, kw_only=True)
class Creation:
    """Whether and where the ACLs are created, and how they are printed."""

    bootstrap_servers: Annotated[str | None, brokers_option(variable=BOOTSTRAP_VARIABLE)] = None
    topic_prefix: TopicPrefix = ""
    timeout: Timeout = 10
    properties: ClientProperties = None
    apply: Annotated[
        bool,
        flag("--apply", "Compare with the brokers' ACLs; --execute creates those that are missing.", CREATION_PANEL),
    ] = False
    execute: Annotated[
        bool,
        typer.Option(
            "--execute/--dry-run",
            help="With --apply: create the ACLs; without it they are only shown.",
            rich_help_panel=CREATION_PANEL,
        ),
    ] = False
    command_config: Annotated[
        str | None, option(metavar="FILE", text="Of the printed commands, with their credentials.", panel=OUTPUT_PANEL)
    ] = None
    as_json: Annotated[bool, flag("--json", "Print JSON.", OUTPUT_PANEL)] = False


@with_options("creation", Creation)
@with_options("names", Names)
def acls(
    names: Names,
    creation: Creation,
    roles: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ROLE...",
            help=f"{', '.join(ROLES)}; by default all.",
            callback=_known_roles,
            show_default=False,
        ),
    ] = None,
) -> None:
    """Print the ACLs that each role needs, as commands of kafka-acls.sh.

    They are minimal: without any of them, something of its role is refused. With --apply, a table shows which of them
    the brokers have, and --execute creates the others. Nothing is ever removed.
    """
    topics = TopicNames(creation.topic_prefix)
    principals = key_values(names.principal, "--principal")
    found = acls_of(roles or ROLES, topics, principals, names.of_users())
    if creation.execute and not creation.apply:
        fail("--execute needs --apply", USAGE)
    if creation.apply:
        _apply(found, creation)
    elif creation.as_json:
        print_json([_as_json(acl) for acl in found])
    else:
        for line in command_lines(found, creation.bootstrap_servers or PLACEHOLDER, creation.command_config):
            print_plain(line)
    _note_what_is_left_out(roles or list(ROLES), names.of_users())


def _note_what_is_left_out(roles: Sequence[str], given: dict[Kind, Sequence[str]]) -> None:
    """Say which options would add rights to the users' own resources."""
    for kind, patterns in given.items():
        lacking = [
            role
            for role in roles
            if not ROLES[role].takes_every
            and any(right.is_of_users and right.kind is kind for right in ROLES[role].rights)
        ]
        if lacking and not patterns:
            option_name = f"--{kind.replace(' ', '-')}"
            err.line(f"note: without {option_name}, {', '.join(lacking)} get no right to the users' {kind}s")


def _apply(wanted: Sequence[Acl], creation: Creation) -> None:
    servers = creation.bootstrap_servers
    if servers is None:
        fail("--apply needs --bootstrap-servers", USAGE)
    config: dict[str, Any] = {"log_level": LOG_NOTHING, **key_values(creation.properties, "--property")}
    with announcing_waits(err.line, servers):
        admin = _Acls({**config, "bootstrap.servers": servers}, creation.timeout)
        existing = admin.existing(wanted)
        missing = [acl for acl in wanted if acl not in existing]
        if creation.execute:
            admin.create(missing)
    states = {True: "created" if creation.execute else "missing", False: "exists"}
    if creation.as_json:
        print_json([{**_as_json(acl), "state": states[acl in missing]} for acl in wanted])
        return
    out.table(
        COLUMNS,
        [
            (
                *(acl.principal, str(acl.resource.kind), acl.resource.name, str(acl.operation), states[acl in missing]),
                *(acl.resource.pattern, ", ".join(acl.roles), acl.purpose),
            )
            for acl in wanted
        ],
    )
    if creation.execute:
        out.line(f"{counted(len(missing), 'ACL')} created")
    elif missing:
        out.line(f"Nothing was changed: this was a dry run. --execute creates {counted(len(missing), 'ACL')}.")
    else:
        out.line("The brokers have all of these ACLs.")


class _Acls:
    """The ACLs of a cluster. Every method raises BrokersFailed."""

    def __init__(self, config: dict[str, Any], timeout: float) -> None:
        self._errors: list[KafkaError] = []
        self._servers = str(config["bootstrap.servers"])
        self._admin = AdminClient(config | {"error_cb": self._errors.append})
        self._timeout = timeout

    def existing(self, wanted: Sequence[Acl]) -> list[Acl]:
        """Those of the ACLs that the brokers have, for every host."""
        try:
            # The client hides the brokers' refusal of the next request.
            cluster = self._admin.describe_cluster(include_authorized_operations=True, request_timeout=self._timeout)
            allowed = cluster.result().authorized_operations
            if AclOperation.DESCRIBE not in (allowed or ()):
                raise _not_allowed("Describe")
            found = set(self._admin.describe_acls(EVERY_ACL, request_timeout=self._timeout).result())
        except KafkaException as failure:
            raise self._meaning(failure) from failure
        return [acl for acl in wanted if _binding(acl) in found]

    def create(self, acls: Sequence[Acl]) -> None:
        """Create ACLs."""
        if not acls:
            return
        created = self._admin.create_acls([_binding(acl) for acl in acls], request_timeout=self._timeout)
        try:
            for future in created.values():
                future.result()
        except KafkaException as failure:
            raise self._meaning(failure) from failure

    def _meaning(self, failure: KafkaException) -> BrokersFailed:
        error = failure.args[0]
        if is_refusal(error):
            return _not_allowed("Alter")
        if error.code() == KafkaError.SECURITY_DISABLED:
            return BrokersFailed(f"Kafka at {self._servers} has no authorizer (authorizer.class.name): it has no ACLs")
        self._admin.poll(0)
        return BrokersFailed(brokers_failed(self._servers, error, self._errors))


def _not_allowed(operation: str) -> BrokersFailed:
    return BrokersFailed(f"the brokers do not allow this user {operation} on the cluster, which ACLs need")


EVERY_ACL = AclBindingFilter(
    ResourceType.ANY,
    None,  # type: ignore[arg-type]  # any name
    ResourcePatternType.ANY,
    None,  # type: ignore[arg-type]  # any principal
    None,  # type: ignore[arg-type]  # any host
    AclOperation.ANY,
    AclPermissionType.ANY,
)


def _binding(acl: Acl) -> AclBinding:
    return AclBinding(
        RESOURCE_TYPES[acl.resource.kind],
        acl.resource.name,
        ResourcePatternType.PREFIXED if acl.resource.is_prefix else ResourcePatternType.LITERAL,
        acl.principal,
        "*",
        ACL_OPERATIONS[acl.operation],
        AclPermissionType.ALLOW,
    )


def _as_json(acl: Acl) -> dict[str, Any]:
    return {
        "principal": acl.principal,
        "resource": acl.resource.kind,
        "name": acl.resource.name,
        "pattern": acl.resource.pattern,
        "operation": acl.operation,
        "roles": acl.roles,
        "for": acl.purpose,
    }
