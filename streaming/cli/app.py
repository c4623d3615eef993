"""The command line application, put together from one module for each command."""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Annotated, Any

import typer

from streaming.cli.commands import (
    acls,
    broker,
    checkpoint,
    demo,
    doctor,
    drill,
    gateway,
    groups,
    quarantine,
    run,
    schema,
    version,
)
from streaming.cli.commands.history import events, explain, replay, sql, top, ui
from streaming.cli.commands.offsets import changes, files, listing, reset, restoring, setting
from streaming.cli.connection import ENVIRONMENT_HELP
from streaming.cli.help_output import Command, Group, Service, examples, unwrapped
from streaming.contract.distribution import DISTRIBUTION, installed_version
from streaming.contract.output.plain import print_plain

__all__ = ["app"]

SERVICES, ANSWERS, INSTALLATION = "Services", "Groups and offsets", "Installation"
"""The panels of ``group-coordinator --help``."""

STOP_IN_ORDER = {"run", "gateway", "broker", "demo", "drill", "ui", "top"}
"""Commands that have something to end in order at Ctrl-C: children, connections of clients, the screen."""


class Application(Group):
    """Lists the commands panel by panel; typer would list groups of commands last."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands in the order of their panels."""
        commands: Any = self.commands
        panels = (SERVICES, ANSWERS, INSTALLATION)
        return sorted(super().list_commands(ctx), key=lambda name: panels.index(commands[name].rich_help_panel))


app = typer.Typer(
    cls=Application,
    help="Kafka's group coordinator as a Spark Structured Streaming job.",
    epilog=examples(
        "demo",
        "run --embedded --gateway",
        "run -b kafka-1:9092 --checkpoint /var/lib/coordinator",
        "groups list -b kafka-1:9092",
    ),
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def _print_version(context: typer.Context, is_wanted: bool) -> None:
    # A shell that completes a command line runs this, too.
    if is_wanted and not context.resilient_parsing:
        print_plain(f"group-coordinator {installed_version(DISTRIBUTION)}")
        raise typer.Exit


def _version_option(*, hidden: bool) -> Any:
    return typer.Option(
        "--version",
        help="Show the version and exit.",
        callback=_print_version,
        is_eager=True,
        hidden=hidden,
    )


HiddenVersion = Annotated[bool, _version_option(hidden=True)]
"""Kafka's tools have it, so it is tried anywhere."""


@app.callback()
def _program_with_version(version: Annotated[bool, _version_option(hidden=False)] = False) -> None:
    pass


def _group_with_version(version: HiddenVersion = False) -> None:
    pass


def _with_version(command: Callable[..., None]) -> Callable[..., None]:
    """The command with one more option, whose value it does not get."""

    @wraps(command)
    def with_version(**arguments: Any) -> None:
        del arguments[own.name]
        command(**arguments)

    signature = inspect.signature(command)
    own = inspect.Parameter("version", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=HiddenVersion)
    with_version.__signature__ = signature.replace(parameters=[*signature.parameters.values(), own])  # type: ignore[attr-defined]
    with_version.__annotations__ = {**command.__annotations__, own.name: own.annotation}
    return with_version


def _group(to: typer.Typer, name: str, help_text: str, panel: str | None = None) -> typer.Typer:
    group = typer.Typer(cls=Group, help=help_text, no_args_is_help=True)
    to.add_typer(group, name=name, rich_help_panel=panel)
    group.callback()(_group_with_version)
    return group


groups_app = _group(app, "groups", "List, describe and delete groups.", ANSWERS)
quarantine_app = _group(groups_app, "quarantine", "Examine and drop groups whose stored state cannot be read.")
offsets_app = _group(app, "offsets", "Show, move and restore committed offsets.", ANSWERS)
checkpoint_app = _group(
    app, "checkpoint", "Back up, verify, restore, rebuild and change the job's checkpoint.", INSTALLATION
)


def _add(
    to: typer.Typer, commands: Mapping[str, tuple[Callable[..., None], *tuple[str, ...]]], panel: str | None = None
) -> None:
    """Add commands by name, each with the examples that its help shows."""
    for name, (command, *command_lines) in commands.items():
        is_connected = "connection" in inspect.unwrap(command).__annotations__
        environment = ENVIRONMENT_HELP if is_connected else ""
        epilog = examples(*command_lines, environment=environment) if command_lines else None
        help_text = unwrapped(command.__doc__ or "")
        kind = Service if name in STOP_IN_ORDER else Command
        to.command(name, cls=kind, help=help_text, epilog=epilog, rich_help_panel=panel)(_with_version(command))


_add(
    app,
    {
        "run": (
            run.run,
            "run --embedded",
            "run --embedded --gateway --checkpoint ./state",
            "run -b kafka-1:9092 --checkpoint /var/lib/coordinator",
            "run --config coordinator.toml --set group.max.size=100",
        ),
        "gateway": (
            gateway.gateway,
            "gateway -b localhost:9092 --listen localhost:19092",
            "gateway -b kafka-1:9092 --listen 0.0.0.0:19092 --advertised-host gw.example",
        ),
        "broker": (broker.broker, "broker --port 9092 --data-dir ./kafka"),
        "demo": (demo.demo,),
    },
    SERVICES,
)
_add(
    app,
    {
        "explain": (
            explain.explain,
            "explain billing",
            "explain billing --since 2h --json",
            "explain billing --member consumer-1 --live",
            "explain billing --since 2h --html billing.html",
        ),
        "events": (events.events, "events --since 1h", "events --follow --json", "events --follow --publish"),
        "replay": (
            replay.replay,
            "replay billing --since 2h",
            "replay billing --since 2h --static",
            "replay billing --set group.initial.rebalance.delay.ms=10000 --session 60s",
            "replay billing --case billing.json --anonymise",
        ),
        "top": (top.top, "top -b kafka-1:9092", "top --sort lag"),
        "ui": (ui.ui, "ui -b kafka-1:9092", "ui -b kafka-1:9092 --port 8080 --allow-host groups.example"),
        "sql": (
            sql.sql,
            "sql -b kafka-1:9092 'select groupId, state, members from groups'",
            "sql --checkpoint /var/lib/coordinator 'select * from offsets'",
            "sql -b kafka-1:9092 --at 2h 'select * from members'",
        ),
    },
    ANSWERS,
)
_add(
    groups_app,
    {
        "list": (
            groups.list_groups,
            "groups list -b kafka-1:9092 --state Stable",
            "groups list 'billing-*'",
            "groups list --at 2h",
        ),
        "describe": (
            groups.describe_groups,
            "groups describe billing",
            "groups describe billing --at 2026-11-24T03:12:00Z",
        ),
        "delete": (
            groups.delete_groups,
            "groups delete billing",
            "groups delete 'billing-test-*'",
            "groups delete 'billing-test-*' --execute",
        ),
        "configure": (
            groups.configure_group,
            "groups configure billing",
            "groups configure billing consumer.session.timeout.ms=60000",
        ),
    },
)
_add(
    quarantine_app,
    {
        "list": (quarantine.list_quarantined, "groups quarantine list"),
        "show": (quarantine.show_quarantined, "groups quarantine show billing"),
        "export": (quarantine.export_quarantined, "groups quarantine export billing -o billing.snapshot"),
        "drop": (
            quarantine.drop_quarantined,
            "groups quarantine drop billing --reason 'damaged by a full disk'",
        ),
    },
)
_add(
    offsets_app,
    {
        "list": (listing.list_offsets, "offsets list billing"),
        "commit": (
            setting.commit_offsets,
            "offsets commit billing orders:0=42 orders:1=0",
            "offsets commit billing orders:0=42 --execute --reason 'skips a broken record'",
        ),
        "delete": (
            setting.delete_offsets,
            "offsets delete billing --topic payments",
            "offsets delete billing --topic orders:0,2-5 --execute",
        ),
        "history": (changes.history, "offsets history billing", "offsets history billing orders:0 --since 2h"),
        "diff": (changes.diff, "offsets diff billing --from 2h", "offsets diff billing --from 2h --to 1h"),
        "reset": (
            reset.reset,
            "offsets reset billing --all-topics --to-datetime 2026-11-24T03:00:00Z",
            "offsets reset billing --topic orders:0,2-5 --shift-by -100 --execute --reason 'lost e-mails'",
            "offsets reset billing --topic orders --to-earliest --execute --force",
        ),
        "restore": (
            restoring.restore,
            "offsets restore billing --as-of 2h",
            "offsets restore billing --as-of 2026-11-24T03:00:00Z --execute",
        ),
        "undo": (restoring.undo, "offsets undo billing", "offsets undo billing --execute --force"),
        "clone": (restoring.clone_group, "offsets clone billing billing-test --execute"),
        "export": (files.export_offsets, "offsets export billing -o billing.csv", "offsets export billing --as-of 2h"),
        "import": (files.import_offsets, "offsets import billing billing.csv --execute"),
        "apply": (
            restoring.apply_plan,
            "offsets reset billing --all-topics --to-earliest --save-plan plan.json",
            "offsets apply plan.json --execute",
        ),
    },
)
_add(
    checkpoint_app,
    {
        "backup": (
            checkpoint.backup,
            "checkpoint backup /var/lib/coordinator /backups/coordinator",
            "checkpoint backup /var/lib/coordinator /backups/coordinator --keep 7",
        ),
        "list": (
            checkpoint.list_contents,
            "checkpoint list /backups/coordinator",
            "checkpoint list /var/lib/coordinator",
        ),
        "verify": (
            checkpoint.verify,
            "checkpoint verify /backups/coordinator/2026-11-23T12-00-00.000000Z-batch-57",
            "checkpoint verify /var/lib/coordinator -b kafka-1:9092",
        ),
        "restore": (
            checkpoint.restore,
            "checkpoint restore /backups/coordinator/2026-11-23T12-00-00.000000Z-batch-57 /var/lib/coordinator "
            "-b kafka-1:9092",
        ),
        "rebuild": (
            checkpoint.rebuild,
            "checkpoint rebuild /var/lib/coordinator -b kafka-1:9092",
            "checkpoint rebuild /var/lib/coordinator --backup "
            "/backups/coordinator/2026-11-23T12-00-00.000000Z-batch-57 -b kafka-1:9092",
        ),
        "repartition": (
            checkpoint.repartition,
            "checkpoint repartition /var/lib/coordinator --state-partitions 4",
        ),
        "migrate": (
            checkpoint.migrate,
            "checkpoint migrate /var/lib/coordinator /mnt/fast/coordinator",
            "checkpoint migrate /var/lib/coordinator /var/lib/coordinator --state-store rocksdb",
        ),
        "downgrade": (
            checkpoint.downgrade,
            "checkpoint downgrade /var/lib/coordinator --to 0.1.0 -b kafka-1:9092",
        ),
    },
)
_add(
    app,
    {
        "doctor": (
            doctor.doctor,
            "doctor",
            "doctor -b kafka-1:9092 --checkpoint /var/lib/coordinator",
            "doctor --config coordinator.toml",
        ),
        "acls": (
            acls.acls,
            "acls gateway job --principal job=User:coordinator",
            "acls client --topic orders --group 'billing-*' --json",
            "acls -b kafka-1:9092 -X security.protocol=SSL --apply",
            "acls -b kafka-1:9092 -X security.protocol=SSL --apply --execute",
        ),
        "drill": (
            drill.drill,
            "drill",
            "drill standby -o /var/reports",
            "drill kill --set state-store=rocksdb",
            "drill standby -b kafka-1:9092 --pid 4711",
        ),
        "schema": (schema.schema,),
        "version": (version.version,),
    },
    INSTALLATION,
)
