"""The environment of a run: machine, versions, commit, and the folder of its results."""

import os
import platform
import re
import subprocess
import sys
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from streaming.embedded.jars import java_executable, resolve_jars

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(os.environ.get("BENCH_RESULTS", ROOT / "bench-results"))
DISTRIBUTIONS = ("pyspark", "confluent-kafka", "msgspec", "pyarrow", "pandas")


def machine() -> dict[str, str]:
    """Return processor, cores, memory, system, and the load average before the run."""
    model = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": model[1] if model else platform.machine(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{pages / 2**30:.0f} GiB",
        "system": platform.platform(),
        "load before": f"{os.getloadavg()[0]:.1f}",
    }


def versions() -> dict[str, str]:
    """Return the versions of Python, its packages, Java and the broker."""
    java = subprocess.run([java_executable(), "-version"], capture_output=True, text=True, check=True).stderr
    broker = next(jar for jar in resolve_jars().broker if jar.name.startswith("kafka_"))
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in DISTRIBUTIONS},
        "java": java.split('"')[1],
        "broker": broker.stem.rpartition("-")[2],
    }


def commit(checkout: Path = ROOT) -> str:
    """Return the commit of a checkout, with `+` if it has uncommitted changes; `unknown` without a repository."""
    try:
        arguments = ["git", "-C", str(checkout), "describe", "--always", "--abbrev=9", "--dirty=+"]
        return subprocess.run(arguments, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def write_results(name: str, date: datetime, results: msgspec.Struct) -> Path:
    """Write the results as JSON into the folder of results; returns the file."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    file = RESULTS / date.strftime(f"{name}-%Y%m%d-%H%M%S.json")
    file.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=2) + b"\n")
    return file


def print_results(table: Table, file: Path, width: int) -> None:
    """Print the table, with this width where there is no terminal, and the file's name."""
    Console(width=None if sys.stdout.isatty() else width).print(table)
    say_written(str(file))


def say_written(what: str) -> None:
    """Say on standard error which files were written."""
    Console(stderr=True).print(f"wrote {what}", highlight=False, soft_wrap=True)
