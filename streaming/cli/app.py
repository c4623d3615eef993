"""The command line application, put together from one module for each command."""

from collections.abc import Callable
from typing import Any

import typer

from streaming.cli.commands import (
    broker,
    checkpoint,
    checkpoint_changes,
    demo,
    doctor,
    drill,
    gateway,
    group_config,
    groups,
    quarantine,
    run,
    schema,
    version,
)
from streaming.cli.commands.history import events, explain, replay, sql, top, ui
from streaming.cli.commands.offsets import changes, files, listing, reset, restoring
from streaming.cli.connection import ENVIRONMENT_HELP
from streaming.cli.help_output import Command, Group, examples, unwrapped

__all__ = ["app"]

SERVICES, ANSWERS, INSTALLATION = "Services", "Groups and offsets", "Installation"
"""The panels of ``group-coordinator --help``."""


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
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
groups_app = typer.Typer(cls=Group, help="List, describe and delete groups.", no_args_is_help=True)
offsets_app = typer.Typer(cls=Group, help="Show, move and restore committed offsets.", no_args_is_help=True)
quarantine_app = typer.Typer(
    cls=Group, help="Examine and drop groups whose stored state cannot be read.", no_args_is_help=True
)
checkpoint_app = typer.Typer(
    cls=Group, help="Back up, verify, restore, rebuild and change the job's checkpoint.", no_args_is_help=True
)
groups_app.add_typer(quarantine_app, name="quarantine")
app.add_typer(groups_app, name="groups", rich_help_panel=ANSWERS)
app.add_typer(offsets_app, name="offsets", rich_help_panel=ANSWERS)
app.add_typer(checkpoint_app, name="checkpoint", rich_help_panel=INSTALLATION)


def _add(
    to: typer.Typer, name: str, command: Callable[..., None], *command_lines: str, panel: str | None = None, **more: str
) -> None:
    epilog = examples(*command_lines, **more) if command_lines else None
    help_text = unwrapped(command.__doc__ or "")
    to.command(name, cls=Command, help=help_text, epilog=epilog, rich_help_panel=panel)(command)


_add(
    app,
    "run",
    run.run,
    "run --embedded",
    "run --embedded --gateway --checkpoint ./state",
    "run -b kafka-1:9092 --checkpoint /var/lib/coordinator",
    "run --config coordinator.toml --set group.max.size=100",
    panel=SERVICES,
)
_add(
    app,
    "gateway",
    gateway.gateway,
    "gateway -b localhost:9092 --listen localhost:19092",
    "gateway -b kafka-1:9092 --listen 0.0.0.0:19092 --advertised-host gw.example",
    panel=SERVICES,
)
_add(app, "broker", broker.broker, "broker --port 9092 --data-dir ./kafka", panel=SERVICES)
_add(app, "demo", demo.demo, panel=SERVICES)
_add(
    app,
    "explain",
    explain.explain,
    "explain billing",
    "explain billing --since 2h --json",
    "explain billing --member consumer-1 --live",
    "explain billing --since 2h --html billing.html",
    panel=ANSWERS,
    environment=ENVIRONMENT_HELP,
)
_add(
    app,
    "events",
    events.events,
    "events --since 1h",
    "events --follow --json",
    "events --follow --publish",
    panel=ANSWERS,
    environment=ENVIRONMENT_HELP,
)
_add(
    app,
    "replay",
    replay.replay,
    "replay billing --since 2h",
    "replay billing --since 2h --static",
    "replay billing --set group.initial.rebalance.delay.ms=10000 --session 60s",
    "replay billing --case billing.json --anonymise",
    panel=ANSWERS,
    environment=ENVIRONMENT_HELP,
)
_add(app, "top", top.top, "top -b kafka-1:9092", "top --sort lag", panel=ANSWERS, environment=ENVIRONMENT_HELP)
_add(
    app,
    "ui",
    ui.ui,
    "ui -b kafka-1:9092",
    "ui -b kafka-1:9092 --port 8080 --allow-host groups.example",
    panel=ANSWERS,
    environment=ENVIRONMENT_HELP,
)
_add(
    groups_app,
    "list",
    groups.list_groups,
    "groups list -b kafka-1:9092 --state Stable",
    "groups list --at 2h",
    environment=ENVIRONMENT_HELP,
)
_add(
    groups_app,
    "describe",
    groups.describe_groups,
    "groups describe billing",
    "groups describe billing --at 2026-11-24T03:12:00Z",
    environment=ENVIRONMENT_HELP,
)
_add(groups_app, "delete", groups.delete_groups, "groups delete billing", environment=ENVIRONMENT_HELP)
_add(
    groups_app,
    "configure",
    group_config.configure_group,
    "groups configure billing",
    "groups configure billing consumer.session.timeout.ms=60000",
    environment=ENVIRONMENT_HELP,
)
_add(quarantine_app, "list", quarantine.list_quarantined, "groups quarantine list", environment=ENVIRONMENT_HELP)
_add(
    quarantine_app,
    "show",
    quarantine.show_quarantined,
    "groups quarantine show billing",
    environment=ENVIRONMENT_HELP,
)
_add(
    quarantine_app,
    "export",
    quarantine.export_quarantined,
    "groups quarantine export billing -o billing.snapshot",
    environment=ENVIRONMENT_HELP,
)
_add(
    quarantine_app,
    "drop",
    quarantine.drop_quarantined,
    "groups quarantine drop billing --reason 'damaged by a full disk'",
    environment=ENVIRONMENT_HELP,
)
OFFSET_COMMANDS: dict[str, tuple[Callable[..., None], tuple[str, ...]]] = {
    "list": (listing.list_offsets, ("list billing",)),
    "commit": (listing.commit_offsets, ("commit billing orders:0=42 orders:1=0",)),
    "history": (changes.history, ("history billing", "history billing orders:0 --since 2h")),
    "diff": (changes.diff, ("diff billing --from 2h", "diff billing --from 2h --to 1h")),
    "reset": (
        reset.reset,
        (
            "reset billing --all-topics --to-datetime 2026-11-24T03:00:00Z",
            "reset billing --topic orders:0,2-5 --shift-by -100 --execute --reason 'lost e-mails'",
            "reset billing --topic orders --to-earliest --execute --force",
        ),
    ),
    "restore": (
        restoring.restore,
        ("restore billing --as-of 2h", "restore billing --as-of 2026-11-24T03:00:00Z --execute"),
    ),
    "undo": (restoring.undo, ("undo billing", "undo billing --execute --force")),
    "clone": (restoring.clone_group, ("clone billing billing-test --execute",)),
    "export": (files.export_offsets, ("export billing -o billing.csv", "export billing --as-of 2h")),
    "import": (files.import_offsets, ("import billing billing.csv --execute",)),
    "apply": (
        restoring.apply_plan,
        (
            "reset billing --all-topics --to-earliest --save-plan plan.json",
            "offsets apply plan.json --execute",
        ),
    ),
}
for name, (command, lines) in OFFSET_COMMANDS.items():
    examples_of = [line if line.startswith("offsets ") else f"offsets {line}" for line in lines]
    _add(offsets_app, name, command, *examples_of, environment=ENVIRONMENT_HELP)
_add(
    app,
    "sql",
    sql.sql,
    "sql -b kafka-1:9092 'select groupId, state, members from groups'",
    "sql --checkpoint /var/lib/coordinator 'select * from offsets'",
    "sql -b kafka-1:9092 --at 2h 'select * from members'",
    panel=ANSWERS,
)
_add(
    checkpoint_app,
    "backup",
    checkpoint.backup,
    "checkpoint backup /var/lib/coordinator /backups/coordinator",
    "checkpoint backup /var/lib/coordinator /backups/coordinator --keep 7",
)
_add(
    checkpoint_app,
    "verify",
    checkpoint.verify,
    "checkpoint verify /backups/coordinator/2026-11-23T12-00-00.000000Z-batch-57",
    "checkpoint verify /var/lib/coordinator -b kafka-1:9092",
)
_add(
    checkpoint_app,
    "restore",
    checkpoint_changes.restore,
    "checkpoint restore /backups/coordinator/2026-11-23T12-00-00.000000Z-batch-57 /var/lib/coordinator -b kafka-1:9092",
)
_add(
    checkpoint_app,
    "rebuild",
    checkpoint_changes.rebuild,
    "checkpoint rebuild /var/lib/coordinator -b kafka-1:9092",
    "checkpoint rebuild /var/lib/coordinator --backup /backups/coordinator/2026-11-23T12-00-00.000000Z-batch-57 "
    "-b kafka-1:9092",
)
_add(
    checkpoint_app,
    "repartition",
    checkpoint_changes.repartition,
    "checkpoint repartition /var/lib/coordinator --state-partitions 4",
)
_add(
    checkpoint_app,
    "migrate",
    checkpoint_changes.migrate,
    "checkpoint migrate /var/lib/coordinator /mnt/fast/coordinator",
    "checkpoint migrate /var/lib/coordinator /var/lib/coordinator --state-store rocksdb",
)
_add(
    app,
    "doctor",
    doctor.doctor,
    "doctor",
    "doctor -b kafka-1:9092 --checkpoint /var/lib/coordinator",
    "doctor --config coordinator.toml",
    panel=INSTALLATION,
)
_add(
    app,
    "drill",
    drill.drill,
    "drill",
    "drill standby -o /var/reports",
    "drill kill --set state-store=rocksdb",
    "drill standby -b kafka-1:9092 --pid 4711",
    panel=INSTALLATION,
)
_add(app, "schema", schema.schema, panel=INSTALLATION)
_add(app, "version", version.version, panel=INSTALLATION)
