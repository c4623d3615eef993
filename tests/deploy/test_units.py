"""The units of deploy/systemd, and the commands of docs/deploy.md that install them."""

import ctypes
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from streaming.cli.commands import gateway, run
from streaming.embedded.broker import EmbeddedBroker
from streaming.gateway.options import GatewayOptions, load_gateway_options
from streaming.job.options import JobOptions, load_options
from tests.docs.console.lines import lines_of_other_programs, parsed, words_of
from tests.docs.markdown import ROOT
from tests.support.processes import Process

UNITS = ROOT / "deploy" / "systemd"
JOB, GATEWAY = UNITS / "group-coordinator@.service", UNITS / "group-coordinator-gateway.service"
INSTANCE = "9404"

PR_SET_MDWE, PR_GET_MDWE = 65, 66
"""Numbers of the kernel's calls that deny memory to be executed after it was written."""

DENIED = (
    "import ctypes, os, sys\n"
    f"assert ctypes.CDLL(None).prctl({PR_SET_MDWE}, 1, 0, 0, 0) == 0\n"
    "os.execv(sys.argv[1], sys.argv[1:])"
)
"""A program that denies it, and becomes the program of its arguments."""

MOST_EXPOSED = 2.0
"""The exposure that systemd computes for a unit, from 0 to 10, at most: it calls less than 2 little."""

DOCUMENT = (ROOT / "docs" / "deploy.md").read_text()
LINES = lines_of_other_programs(DOCUMENT)

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")


def setting(unit: Path, key: str) -> list[str]:
    """The values of a key in a unit, as the first instance has them."""
    return [value.replace("%i", INSTANCE) for value in re.findall(rf"^{key}=(.*)$", unit.read_text(), re.MULTILINE)]


def command(unit: Path, folder: Path) -> tuple[list[str], dict[str, str]]:
    """The words of a unit's command, and its variables, with the documented files of options in a folder."""
    (line,) = setting(unit, "ExecStart")
    (credential,) = setting(unit, "LoadCredential")
    name = credential.partition(":")[0]
    (text,) = re.findall(rf"^```toml\n# {re.escape(name)}\n(.*?)```", DOCUMENT, re.MULTILINE | re.DOTALL)
    (folder / name).write_text(text)
    program, *words = shlex.split(line.replace("${CREDENTIALS_DIRECTORY}", str(folder)))
    assert program == "/opt/group-coordinator/bin/group-coordinator"
    return words, dict(each.split("=", 1) for each in setting(unit, "Environment"))


def job_options(folder: Path) -> JobOptions:
    words, environment = command(JOB, folder)
    context = parsed(words)
    return load_options({name: context.params[name] for name in run.JOB_FLAGS}, environment, context.params["config"])


def gateway_options(folder: Path) -> GatewayOptions:
    words, environment = command(GATEWAY, folder)
    context = parsed(words)
    flags = {name: context.params[name] for name in gateway.FLAGS}
    return load_gateway_options(flags, environment, context.params["config"])


def test_a_job_stands_by_and_writes_to_the_folders_of_its_unit_only(tmp_path: Path) -> None:
    options = job_options(tmp_path)
    assert options.standby
    assert options.metrics_port == int(INSTANCE)
    assert Path(options.checkpoint).parent == Path("/var/lib") / setting(JOB, "StateDirectory")[0]
    cache = command(JOB, tmp_path)[1]["GROUP_COORDINATOR_CACHE"]
    assert Path(cache) == Path("/var/cache") / setting(JOB, "CacheDirectory")[0]


def test_both_instances_are_one_user_who_can_read_the_checkpoint() -> None:
    assert setting(JOB, "DynamicUser") == ["yes"]
    assert setting(JOB, "User") == ["group-coordinator"]


def test_a_gateway_listens_where_clients_are_sent(tmp_path: Path) -> None:
    options = gateway_options(tmp_path)
    assert options.listen == "0.0.0.0:19092"
    assert options.effective_advertised_host == "gateway-1.example.org"


@pytest.mark.parametrize("unit", [JOB, GATEWAY], ids=lambda unit: unit.name)
def test_a_unit_stops_by_sigterm_for_the_process_alone_and_starts_again_whatever_happens(unit: Path) -> None:
    assert setting(unit, "KillMode") == ["mixed"]
    assert int(setting(unit, "TimeoutStopSec")[0]) > 15
    assert setting(unit, "Restart") == ["always"]
    assert setting(unit, "StartLimitIntervalSec") == ["0"]


def test_a_gateway_runs_where_memory_that_was_written_is_never_executed(broker: EmbeddedBroker) -> None:
    """As systemd denies it with ``MemoryDenyWriteExecute``, here by the kernel's own switch, which ``exec`` keeps."""
    assert setting(GATEWAY, "MemoryDenyWriteExecute") == ["yes"]
    if ctypes.CDLL(None).prctl(PR_GET_MDWE, 0, 0, 0, 0) < 0:
        pytest.skip("this kernel has no such switch")
    words = ["gateway", "-b", broker.bootstrap_servers, "--listen", "127.0.0.1:0"]
    command_line = [sys.executable, "-c", DENIED, sys.executable, "-m", "streaming.cli", *words]
    with Process("gateway", command_line) as running:
        running.start()
        running.await_line("that it is ready", lambda line: line.startswith("ready"))
        assert running.stop() == 0


@needs_systemd
@pytest.mark.parametrize("unit", [JOB, GATEWAY], ids=lambda unit: unit.name)
def test_systemd_accepts_a_unit_and_calls_it_little_exposed(unit: Path, tmp_path: Path) -> None:
    # It looks for the program.
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text().replace("/opt/group-coordinator/bin/group-coordinator", "/bin/true"))
    verified = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True, check=False)
    assert (verified.returncode, verified.stderr) == (0, "")
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", copy], capture_output=True, text=True, check=True
    )
    (exposure,) = re.findall(r"Overall exposure level for \S+: ([\d.]+)", rated.stdout)
    assert float(exposure) <= MOST_EXPOSED


@needs_systemd
def test_systemd_finds_a_mistake_in_a_unit(tmp_path: Path) -> None:
    copy = tmp_path / GATEWAY.name
    copy.write_text(GATEWAY.read_text().replace("Restart=", "Restarts="))
    verified = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True, check=False)
    assert "Unknown key" in verified.stderr


def test_the_documented_commands_install_the_units_and_the_files_that_they_read(tmp_path: Path) -> None:
    shutil.copytree(UNITS, tmp_path / "deploy" / "systemd")
    for name in ("job.toml", "gateway.toml"):
        (tmp_path / name).touch()
    (tmp_path / "etc" / "systemd" / "system").mkdir(parents=True)
    for line in LINES:
        if line.startswith("install "):
            words = words_of(line.replace("/etc/", f"{tmp_path}/etc/"))
            subprocess.run(words, cwd=tmp_path, check=True)
    for unit in (JOB, GATEWAY):
        assert (tmp_path / "etc" / "systemd" / "system" / unit.name).read_text() == unit.read_text()
        (credential,) = setting(unit, "LoadCredential")
        installed = tmp_path / credential.partition(":")[2].lstrip("/")
        assert installed.stat().st_mode & 0o777 == 0o600


def test_the_documented_commands_name_units_that_exist() -> None:
    named = {
        unit
        for line in LINES
        if line.startswith("systemctl ")
        for unit in words_of(line)
        if unit.startswith("group-coordinator")
    }
    assert named == {"group-coordinator@9404", "group-coordinator@9414", "group-coordinator-gateway"}
    assert all((UNITS / f"{re.sub('@.*', '@', unit)}.service").is_file() for unit in named)
