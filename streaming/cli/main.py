"""The entry point of ``group-coordinator``, which works without any extra installed.

Exit codes: 0 success; 1 the coordinator refused, the group was not found, or the command failed; 2 wrong usage or
configuration; 3 no answer (no broker, no topics, or no running coordinator); 130 interrupted.
"""

import sys

from streaming.cli.extras import missing_extras


def main() -> None:
    """Run the command line. Without the extra ``cli``, print the line that names it."""
    if missing := missing_extras("group-coordinator", "cli"):
        sys.exit(missing)
    from streaming.cli.app import app
    from streaming.cli.console import INTERRUPTED
    from streaming.contract.output.logs import log_to_stderr
    from streaming.contract.output.plain import replace_what_cannot_be_encoded

    replace_what_cannot_be_encoded()
    log_to_stderr()
    try:
        app(prog_name="group-coordinator")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
