"""The sdist and the wheel: how they are built, what they have to contain, and the empty environment for the wheel."""

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import ignore_patterns

PACKAGES = {"coordinator_logic", "streaming"}
"""The packages that the wheel installs."""

NOT_SOURCE = ignore_patterns(
    ".git", ".venv", ".*_cache", ".hypothesis", "build", "dist", "bench-results", "*.egg-info", "__pycache__"
)
"""For `shutil.copytree`: what a copy of the source tree leaves out."""

BUILD_SECONDS, INSTALL_SECONDS, COMMAND_SECONDS = 300, 600, 60

_INHERITED = ("PATH", "JAVA_HOME", "LANG")


class BrokenDistribution(Exception):
    """The sdist or the wheel cannot be built, lacks a file, or does not work where it is installed."""


@dataclass(frozen=True)
class Distributions:
    """The two files of a release, in one folder."""

    sdist: Path
    wheel: Path


def data_files(source: Path) -> set[str]:
    """Every file of the two packages that is no Python, such as ``streaming/py.typed``."""
    return {
        path.relative_to(source).as_posix()
        for package in PACKAGES
        for path in (source / package).rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc")
    }


def build(source: Path, output: Path) -> Distributions:
    """Build both from the tree ``source`` into the folder ``output``, which has to be empty or missing.

    Raises:
        BrokenDistribution: the build has failed; the message is its output.
    """
    # uv makes the two environments for the build in a fraction of pip's time.
    command = [sys.executable, "-m", "build", "--installer", "uv", "--outdir", str(output), str(source)]
    _checked(command, BUILD_SECONDS)
    [sdist], [wheel] = output.glob("*.tar.gz"), output.glob("*.whl")
    return Distributions(sdist, wheel)


def check_contents(built: Distributions, source: Path) -> None:
    """Check that the two packages and their data are in both files, and no other package in the wheel.

    Raises:
        BrokenDistribution: something is missing, or too much is there.
    """
    in_wheel = set(zipfile.ZipFile(built.wheel).namelist())
    packages = {name.partition("/")[0] for name in in_wheel if ".dist-info/" not in name}
    if packages != PACKAGES:
        raise BrokenDistribution(f"{built.wheel.name} has the packages {sorted(packages)}, not {sorted(PACKAGES)}")
    with tarfile.open(built.sdist) as archive:
        in_sdist = {name.partition("/")[2] for name in archive.getnames()}
    _check_has(built.wheel, in_wheel, data_files(source))
    _check_has(built.sdist, in_sdist, {"pyproject.toml", "README.md", "LICENSE", *data_files(source)})


def _check_has(file: Path, names: set[str], needed: set[str]) -> None:
    if missing := needed - names:
        raise BrokenDistribution(f"{file.name} lacks {', '.join(sorted(missing))}")


def empty_environment(folder: Path) -> Path:
    """Make a virtual environment that holds nothing but pip; return its ``bin`` folder."""
    venv.create(folder, with_pip=True)
    return folder / "bin"


def install(environment: Path, requirement: str) -> None:
    """Install with the pip of an environment, given by its ``bin`` folder.

    Raises:
        BrokenDistribution: pip has failed; the message is its output.
    """
    # Isolated (-I), because a PYTHONPATH with the source tree would count as an installation.
    # What is imported is compiled then; pip would compile everything.
    command = [str(environment / "python"), "-I", "-m", "pip", "install", "--quiet", "--no-compile", requirement]
    _checked(command, INSTALL_SECONDS)


def clean_command(folder: Path, command: list[str], variables: Mapping[str, str]) -> list[str]:
    """The command in ``folder``, which is also its home, and with no other variables than these and the path's."""
    kept = {name: value for name, value in os.environ.items() if name in _INHERITED}
    environment = {**kept, "HOME": str(folder), **variables}
    assigned = [f"{name}={value}" for name, value in environment.items()]
    return ["env", "--ignore-environment", f"--chdir={folder}", *assigned, *command]


def check_installed(environment: Path, folder: Path, version: str) -> None:
    """Check the installation in an environment, from the empty folder ``folder`` and without the source tree.

    Raises:
        BrokenDistribution: a package cannot be imported, has no types, or the command fails or has another version.
    """
    python, program = str(environment / "python"), str(environment / "group-coordinator")
    imports = "import coordinator_logic.step, streaming.client as c; print(c.__file__)"
    imported = _checked(clean_command(folder, [python, "-c", imports], {}), COMMAND_SECONDS)
    if not Path(imported.strip()).is_relative_to(environment.parent):
        raise BrokenDistribution(f"streaming.client was imported from {imported.strip()}")
    _checked(clean_command(folder, [program, "--help"], {}), COMMAND_SECONDS)
    shown = _checked(clean_command(folder, [program, "version"], {}), COMMAND_SECONDS)
    if f"spark-group-coordinator {version}\n" not in shown:
        raise BrokenDistribution(f"the installed command has another version than {version}: {shown}")


def _checked(command: list[str], seconds: int) -> str:
    """Run a command; return what it prints."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    if done.returncode != 0:
        raise BrokenDistribution(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout
