"""Wrong usage: checks of values as the command line is parsed, and what a command says of a wrong one.

A wrong value ends a command before it does anything. The message has the option or argument, what it was given, and
what it takes.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from streaming.contract.errors import CannotRun
from streaming.contract.folders import require_writable
from streaming.contract.identity import read_principal_key
from streaming.contract.option_values import converted, whole_number
from streaming.contract.output.text import printable

LIST_OF_NAMES = " or "


def taking(option_type: Any) -> Callable[[Any], Any]:
    """A callback of an option that takes a text, or several: it refuses what is not a value of the type."""

    def check(given: str | list[str] | None) -> str | list[str] | None:
        try:
            for value in [given] if isinstance(given, str) else given or ():
                converted(value, option_type)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error
        return given

    return check


def signing_key_file(file: str | None) -> str | None:
    """A callback of an option that names the file of a principal's key."""
    try:
        if file is not None:
            read_principal_key(file)
    except CannotRun as error:
        raise typer.BadParameter(str(error).splitlines()[0]) from error
    return file


def file_to_write(file: Path | None) -> Path | None:
    """A callback of an option that names a file to write: its folder must exist."""
    if file is not None and not file.absolute().parent.is_dir():
        raise typer.BadParameter(f"{file} cannot be written: there is no folder {file.parent}")
    return file_to_write_in_a_new_folder(file)


def file_to_write_in_a_new_folder(file: Path | None) -> Path | None:
    """The same for a file whose folder the command makes if it is missing."""
    if file is not None and file.is_dir():
        raise typer.BadParameter(f"{file} is a folder: give a file")
    try:
        if file is not None:
            require_writable(file.parent)
    except CannotRun as error:
        raise typer.BadParameter(f"{file}: {error}") from error
    return file


def usage_message(error: Any) -> str | None:
    """The message of an error of typer's, in one line; None for a request for help, which typer shows itself.

    error: one of typer's own copy of click, which exports no class of them.
    """
    kind = type(error).__name__
    if kind == "NoArgsIsHelpError":
        return None
    parameter = getattr(error, "param", None)
    if kind == "MissingParameter" and parameter is not None:
        message = f"{_name(parameter)} is missing: give {_how_to_give(parameter)}"
    elif kind == "BadParameter" and parameter is not None:
        message = f"{_name(parameter)}: {_wrong_value(error, parameter)}"
    else:
        message = error.format_message()
    return printable(" ".join(message.split("\n"))) + _place_of_help(error)


def _wrong_value(error: Any, parameter: Any) -> str:
    problems: list[dict[str, Any]] = getattr(error.__cause__, "errors", list)()
    given = f"{problems[0].get('input')!r}" if problems else "this value"
    descriptor: Any = getattr(parameter, "type_descriptor", None)
    if getattr(descriptor, "annotation", None) is not int:
        return str(error.message)
    bounds = descriptor.parameter_info
    return f"{given} is not {whole_number(bounds.min, bounds.max)}"


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name).strip("[]")
    return str(parameter.opts[0])


def _how_to_give(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name)
    given = f"{LIST_OF_NAMES.join(sorted(parameter.opts, key=len))} {parameter.metavar or ''}".strip()
    return f"{given}, or set {parameter.envvar}" if parameter.envvar else given


def _place_of_help(error: Any) -> str:
    context = getattr(error, "ctx", None)
    return "" if context is None else f" (see {context.command_path} --help)"
