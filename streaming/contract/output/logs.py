"""What the process writes to standard error by itself: the log, and errors that nothing has caught."""

import logging
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from streaming.contract.output.plain import print_plain
from streaming.contract.output.text import printable


class PrintableFormatter(logging.Formatter):
    """Shows control characters in a message as escapes, line breaks too; a traceback keeps its lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name in the base class
        """The line of a record."""
        return printable(super().formatMessage(record))

    def formatException(self, ei: object) -> str:  # noqa: N802 - the name in the base class
        """The lines of a traceback."""
        return _printable_lines(super().formatException(ei))  # type: ignore[arg-type]

    def formatStack(self, stack_info: str) -> str:  # noqa: N802 - the name in the base class
        """The lines of a stack."""
        return _printable_lines(super().formatStack(stack_info))


def log_to_stderr() -> None:
    """Log warnings and errors as lines of standard error, and print errors that nothing catches in the same way."""
    handler = logging.StreamHandler()
    handler.setFormatter(PrintableFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    sys.excepthook = _print_error
    threading.excepthook = _print_error_of_thread


@contextmanager
def silenced(name: str) -> Iterator[None]:
    """Drop what a logger and those below it report within the block."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)


def _printable_lines(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))


def _print_error(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    for line in "".join(traceback.format_exception(kind, error, trace)).removesuffix("\n").split("\n"):
        print_plain(line, to_stderr=True)


def _print_error_of_thread(arguments: threading.ExceptHookArgs) -> None:
    # As Python's own hook: an end of the interpreter leaves threads without the error.
    if arguments.exc_type is not SystemExit and arguments.exc_value is not None:
        print_plain(f"Exception in thread {arguments.thread.name if arguments.thread else '?'}:", to_stderr=True)
        _print_error(arguments.exc_type, arguments.exc_value, arguments.exc_traceback)
