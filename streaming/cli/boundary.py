"""The boundary of every command: whatever goes wrong in it becomes one message and an exit code, never a traceback."""

import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import typer
from confluent_kafka import KafkaError, KafkaException

from streaming.cli.exit_codes import REFUSED, USAGE
from streaming.cli.usage import usage_message
from streaming.client.errors import CoordinatorError
from streaming.contract.errors import BadOptions, CannotRun
from streaming.contract.output.plain import print_plain
from streaming.contract.output.terminal import standard_error
from streaming.embedded.broker import BrokerStartError
from streaming.embedded.interruption import interrupted
from streaming.embedded.jars import JarResolutionError, MissingPrerequisite
from streaming.explain.error_sentences import sentence_of_failure

TRACEBACK_VARIABLE = "GROUP_COORDINATOR_TRACEBACK"

JVM_TRACE = "\n\nJVM stacktrace"

_WRONG_CONFIGURATION = (KafkaError._INVALID_ARG, KafkaError._CONFLICT)
"""What librdkafka says of a property that it does not know, or of a value that a property cannot have."""

_SHOWN_AS_THEY_ARE = (CannotRun, BrokerStartError, JarResolutionError, MissingPrerequisite)


@contextmanager
def errors_as_lines() -> Iterator[None]:
    """End the command with the message of an error, and an exit code, instead of a traceback.

    A pipe whose reader has gone, and an end of the program, pass.
    """
    try:
        yield
    except (typer.Exit, typer.Abort, BrokenPipeError):
        raise
    except Exception as error:
        if interrupted():
            # It fails because the user has ended it.
            raise KeyboardInterrupt from error
        message, code = described(error)
        if message is None:
            raise
        print_error(message)
        if os.environ.get(TRACEBACK_VARIABLE):
            for line in traceback.format_exc().splitlines():
                print_plain(line, to_stderr=True)
        raise typer.Exit(code) from error


def print_error(message: str) -> None:
    """Print the message of an error to standard error. It may have several lines."""
    first, *others = message.split("\n")
    terminal = standard_error()
    for line in (f"error: {first}", *others):
        terminal.line(line, style="red")


def described(error: Exception) -> tuple[str | None, int]:
    """The message of an error and the exit code of a command that ends with it; no message for a request for help."""
    if hasattr(error, "format_message"):
        # Typer's own copy of click has the class of these errors, which it does not export.
        return usage_message(error), USAGE
    match error:
        case BadOptions():
            return str(error), USAGE
        case _ if isinstance(error, _SHOWN_AS_THEY_ARE):
            return str(error), REFUSED
        case CoordinatorError():
            return sentence_of_failure(error), REFUSED
        case KafkaException():
            return _of_kafka(error)
        case OSError():
            return _of_file(error), REFUSED
        case _ if _is_of_spark(error):
            return _of_spark(error), REFUSED
    lines = str(error).strip().splitlines()
    what = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return f"this should not happen: {what}; with {TRACEBACK_VARIABLE}=1 in the environment, it says where", REFUSED


def _of_kafka(error: KafkaException) -> tuple[str, int]:
    cause: Any = error.args[0] if error.args else None
    if not isinstance(cause, KafkaError):
        return f"Kafka: {cause or 'unknown error'}", REFUSED
    if cause.code() in _WRONG_CONFIGURATION:
        return f"Kafka's client refuses its properties (-X, or kafka.* options): {cause.str()}", USAGE
    return f"Kafka: {cause.str()}", REFUSED


def _of_file(error: OSError) -> str:
    place = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
    return f"{place}{error.strerror or error}"


def _is_of_spark(error: Exception) -> bool:
    # Without an import of pyspark, which takes seconds and may be missing.
    return any(each.__module__.startswith(("pyspark.errors", "py4j.")) for each in type(error).__mro__)


def _of_spark(error: Exception) -> str:
    message = ""
    # An error of the JVM has no text once Spark has ended.
    with suppress(AssertionError):
        message = str(error).partition(JVM_TRACE)[0].strip()
    return "Spark: " + (message.splitlines() or [type(error).__name__])[0]
