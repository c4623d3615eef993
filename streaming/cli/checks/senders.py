"""The files about who may send requests: keys, and rules about groups."""

from collections.abc import Iterator

from streaming.cli.checks.finding import Finding, ok, problem
from streaming.contract.errors import CannotRun
from streaming.contract.output.text import counted
from streaming.job.options import JobOptions
from streaming.job.senders import ANYONE, read_senders

CHECK = "senders"


def check_senders(options: JobOptions) -> Iterator[Finding]:
    """A finding for each problem of the files that the options name; none if they name no file."""
    try:
        senders = read_senders(options)
    except CannotRun as error:
        for line in str(error).splitlines():
            yield problem(CHECK, line, "change the file or the option, or the job does not start")
        return
    if senders != ANYONE:
        keys = counted(len(senders.keys.ids()), "key")
        rules = "everyone may send everything" if senders.acls is None else counted(len(senders.acls.rules), "rule")
        yield ok(CHECK, f"{keys} for signatures; {rules}")
