"""What a command says of wrong usage: which option or argument it is, what it was given, and what it takes."""

from typing import Any

from streaming.contract.output.text import printable

LIST_OF_NAMES = " or "


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


def whole_number(least: float | None, greatest: float | None) -> str:
    """What an option takes that takes a whole number within bounds."""
    if least is not None and greatest is not None:
        return f"a whole number from {least} to {greatest}"
    if least is not None:
        return f"a whole number, {least} or more"
    return "a whole number" if greatest is None else f"a whole number, {greatest} or less"


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
