"""``group-coordinator version``: the versions of this program and of its dependencies."""

import platform

from streaming.cli.console import AsJson, out, print_json
from streaming.contract.distribution import DISTRIBUTION, installed_version

SHOWN = (DISTRIBUTION, "pyspark", "confluent-kafka", "msgspec", "pyarrow", "pandas", "kio")


def version(as_json: AsJson = False) -> None:
    """Print the versions of this program, of Python and of the installed dependencies."""
    versions = {name: found for name in SHOWN if (found := installed_version(name))}
    versions["python"] = platform.python_version()
    if as_json:
        print_json(versions)
        return
    for name, found in versions.items():
        out.line(f"{name} {found}")
