"""Commands in an environment that lacks an extra: one line that names it, and no traceback."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from streaming.cli.extras import EXTRAS
from tests.support.waiting import LIMIT_SECONDS

UNREACHABLE = "127.0.0.1:1"

PROGRAM = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {modules}:
            raise ModuleNotFoundError("blocked: " + name, name=name)

sys.meta_path.insert(0, Missing())
sys.argv = ["group-coordinator", *{arguments}]
from streaming.cli.main import main
main()
"""

MODULES_OF_OTHER_NAMES = {"kafka-python": "kafka"}
"""Distributions whose module is not named like the distribution."""

ALL_BUT_CLI = sorted({module for extra in ("job", "gateway", "demo") for module in EXTRAS[extra]} - {*EXTRAS["cli"]})


def run_without(modules: list[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``group-coordinator`` in an interpreter that cannot import these modules."""
    program = PROGRAM.format(modules=modules, arguments=list(arguments))
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, env={"NO_COLOR": "1"})


@pytest.mark.parametrize(
    ("modules", "arguments", "line"),
    [
        (["typer"], ["groups", "list"], "group-coordinator needs typer: pip install 'spark-group-coordinator[cli]'"),
        (
            ["typer", "rich"],
            [],
            "group-coordinator needs typer, rich: pip install 'spark-group-coordinator[cli]'",
        ),
        (
            ["pyspark"],
            ["run", "--embedded"],
            "group-coordinator run needs pyspark: pip install 'spark-group-coordinator[job]'",
        ),
        (
            ["pandas", "pyarrow"],
            ["run", "--embedded"],
            "group-coordinator run needs pandas, pyarrow: pip install 'spark-group-coordinator[job]'",
        ),
        (
            ["kio"],
            ["run", "--embedded", "--gateway"],
            "group-coordinator run needs kio: pip install 'spark-group-coordinator[gateway]'",
        ),
        (
            ["kio"],
            ["gateway", "-b", UNREACHABLE],
            "group-coordinator gateway needs kio: pip install 'spark-group-coordinator[gateway]'",
        ),
        (
            ["pyspark", "kio"],
            ["demo"],
            "group-coordinator demo needs pyspark, kio: pip install 'spark-group-coordinator[job,gateway]'",
        ),
        (
            ["pyspark", "kio"],
            ["drill"],
            "group-coordinator drill needs pyspark, kio: pip install 'spark-group-coordinator[job,gateway]'",
        ),
    ],
)
def test_a_missing_extra_is_one_line_that_names_it(modules: list[str], arguments: list[str], line: str) -> None:
    refused = run_without(modules, *arguments)
    assert (refused.returncode, refused.stdout, refused.stderr) == (1, "", line + "\n")


@pytest.mark.parametrize("arguments", [["groups", "list"], ["groups", "describe", "g"], ["offsets", "list", "g"]])
def test_groups_and_offsets_need_only_the_extra_cli(arguments: list[str]) -> None:
    unanswered = run_without(ALL_BUT_CLI, *arguments, "-b", UNREACHABLE, "--timeout", "1")
    assert unanswered.returncode == 1
    assert "error: Kafka at" in unanswered.stderr


@pytest.mark.parametrize("arguments", [["version"], ["schema"], ["--help"], ["run", "--help"], ["gateway", "--help"]])
def test_what_describes_the_program_needs_only_the_extra_cli(arguments: list[str]) -> None:
    assert run_without(ALL_BUT_CLI, *arguments).returncode == 0


def test_doctor_works_without_spark_and_says_so() -> None:
    examined = run_without(ALL_BUT_CLI, "doctor")
    assert examined.returncode == 0, examined.stdout
    assert "not installed: pyspark, pandas, pyarrow, prometheus_client" in examined.stdout
    assert "pip install 'spark-group-coordinator[job]'" in examined.stdout


def test_the_modules_of_each_extra_are_those_of_pyproject() -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    for extra, modules in EXTRAS.items():
        names = [requirement.split(">")[0].split("=")[0] for requirement in project["optional-dependencies"][extra]]
        own = [name for name in names if not name.startswith("spark-group-coordinator")]
        assert list(modules) == [MODULES_OF_OTHER_NAMES.get(name, name.replace("-", "_")) for name in own], extra
