"""The entry point of ``group-coordinator``, which works without any extra installed.

The exit codes are in :mod:`streaming.cli.exit_codes`.
"""

import sys

from streaming.embedded.interruption import end_interrupted, interrupted, watch_for_interrupts


def main() -> None:
    """Run the command line. Without the extra ``cli``, print the line that names it."""
    # Before anything is imported: that takes a second, and Ctrl-C may come in it.
    watch_for_interrupts()
    try:
        try:
            _run()
        finally:
            if interrupted():
                end_interrupted()
    except KeyboardInterrupt:
        # It came after the commands: Python would end with another exit code, by the signal.
        end_interrupted()


def _run() -> None:
    from streaming.cli.extras import missing_extras

    if missing := missing_extras("group-coordinator", "cli"):
        sys.exit(missing)
    from streaming.cli.app import app
    from streaming.contract.output.logs import log_to_stderr
    from streaming.contract.output.plain import replace_what_cannot_be_encoded

    replace_what_cannot_be_encoded()
    log_to_stderr()
    app(prog_name="group-coordinator")


if __name__ == "__main__":
    main()
