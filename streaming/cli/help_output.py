"""How ``--help`` and wrong usage look: flags without a type, defaults in the text, examples after the options."""

import inspect
from collections.abc import Collection
from typing import Any

import typer
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

from streaming.cli.boundary import errors_as_lines
from streaming.embedded.interruption import stopping_in_order


class Command(TyperCommand):
    """A command whose help shows flags as flags."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The command's parameters and ``--help``."""
        return _without_flag_types(super().get_params(ctx))

    def make_context(self, *args: Any, **more: Any) -> Any:
        """Parse the arguments."""
        with errors_as_lines():
            return super().make_context(*args, **more)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with errors_as_lines():
            return super().invoke(ctx)


class Service(Command):
    """A command that Ctrl-C stops in order, and a second one at once."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with stopping_in_order():
            return super().invoke(ctx)


class Group(TyperGroup):
    """A group of commands whose help shows flags as flags."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The group's parameters and ``--help``."""
        return _without_flag_types(super().get_params(ctx))

    def make_context(self, *args: Any, **more: Any) -> Any:
        """Parse the arguments."""
        with errors_as_lines():
            return super().make_context(*args, **more)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with errors_as_lines():
            return super().invoke(ctx)


def _without_flag_types(parameters: list[Any]) -> list[Any]:
    """Drop the type that typer shows for a flag: ``--json <bool>`` reads as if the flag took a value."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


def option(
    *names: str,
    metavar: str,
    text: str,
    panel: str | None = None,
    default: object = None,
    values: Collection[str] = (),
    **more: Any,
) -> Any:
    """An option that takes a value.

    Args:
        names: The option's names, by default derived from the parameter.
        metavar: The value's placeholder.
        text: The description.
        panel: The panel of ``--help`` that lists the option.
        default: A default that is applied later, so that typer does not know it.
        values: What a shell completes it to. The command checks the value itself.
        more: Other arguments of ``typer.Option``.
    """
    if default is not None:
        text = f"{text} [dim]{escape(f'[default: {default}]')}[/dim]"
        more["show_default"] = False
    if values:
        more["autocompletion"] = lambda: list(values)
    return typer.Option(*names, metavar=metavar, help=text, rich_help_panel=panel, show_envvar=False, **more)


def flag(name: str, text: str, panel: str | None = None) -> Any:
    """An option without a value."""
    return typer.Option(name, help=text, rich_help_panel=panel)


def unwrapped(docstring: str) -> str:
    """A docstring as help text: typer breaks lines itself. Indented lines, such as a list, keep their breaks."""
    paragraphs = inspect.cleandoc(docstring).split("\n\n")
    return escape("\n\n".join(text if "\n  " in text else text.replace("\n", " ") for text in paragraphs))


def examples(*command_lines: str, environment: str = "") -> str:
    """The text after a command's options: examples, and optionally the environment variables."""
    lines = "\n".join(f"$ group-coordinator {escape(line)}" for line in command_lines)
    heading = "Example" if len(command_lines) == 1 else "Examples"
    return f"[bold]{heading}[/bold]\n{lines}" + (f"\n\n{environment}" if environment else "")
