"""The exit codes of every command."""

from streaming.embedded.interruption import INTERRUPTED

DONE, REFUSED, USAGE = 0, 1, 2

EXIT_CODES = {
    DONE: "Done. A service has stopped in order on SIGTERM.",
    REFUSED: (
        "Not done: the coordinator refused, something was not found or could not be reached, read or written, or a "
        "check found a problem. Also if the reader of the output has gone, as after `| head`."
    ),
    USAGE: "Wrong usage: an option, an argument, a variable or a configuration file has a wrong value, or lacks one.",
    INTERRUPTED: "Interrupted by Ctrl-C, also a service.",
}
"""What each exit code means, as the documents show it."""

__all__ = ["DONE", "EXIT_CODES", "INTERRUPTED", "REFUSED", "USAGE"]
