"""Finding Java and the jars. Ivy is the real one; its repository is a folder, so that no network is used."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from streaming.jars import JarResolutionError, MissingPrerequisite, java_executable, resolve_jars

LIMIT_SECONDS = 60

IVY_FILE = """\
<ivy-module version="2.0">
  <info organisation="test" module="jars"/>
  <configurations><conf name="connector"/><conf name="broker"/></configurations>
  <dependencies>
    <dependency org="test" name="hadoop-bare-naked-local-fs" rev="1" conf="connector->default"/>
    <dependency org="test" name="kafka" rev="1" conf="broker->default"/>
  </dependencies>
</ivy-module>
"""

IVY_SETTINGS = """\
<ivysettings>
  <settings defaultResolver="folder"/>
  <resolvers>
    <filesystem name="folder"><artifact pattern="{folder}/[artifact]-[revision].[ext]"/></filesystem>
  </resolvers>
</ivysettings>
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two jars, which the environment makes Ivy's only source; the cache is empty."""
    repository = tmp_path / "repository"
    repository.mkdir()
    for jar in ("hadoop-bare-naked-local-fs-1.jar", "kafka-1.jar"):
        (repository / jar).write_bytes(b"a jar")
    ivy_file, settings = tmp_path / "ivy.xml", tmp_path / "ivysettings.xml"
    ivy_file.write_text(IVY_FILE)
    settings.write_text(IVY_SETTINGS.format(folder=repository))
    monkeypatch.setenv("GROUP_COORDINATOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GROUP_COORDINATOR_IVY_FILE", str(ivy_file))
    monkeypatch.setenv("GROUP_COORDINATOR_IVY_SETTINGS", str(settings))
    return repository


@pytest.fixture
def without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one folder on the PATH, empty."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return folder


def test_the_projects_own_jars_resolve() -> None:
    jars = resolve_jars()

    assert jars.local_file_system in jars.connector
    assert {"kafka-clients", "spark-sql-kafka-0-10_2.13"} <= {jar.name.rsplit("-", 1)[0] for jar in jars.connector}
    assert any(jar.name.startswith("kafka_2.13-") for jar in jars.broker)


def test_the_first_call_reports_its_progress_and_the_second_needs_no_java(
    repository: Path, without_java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports: list[str] = []
    with monkeypatch.context() as with_java:
        with_java.setenv("PATH", os.defpath)
        first = resolve_jars(reports.append)
    assert reports[-1] == "Jars downloaded: 2 of 2"

    assert resolve_jars(pytest.fail) == first
    assert [jar.name for jar in first.broker] == ["kafka-1.jar"]
    assert first.local_file_system.read_bytes() == b"a jar"


def test_a_changed_ivy_file_resolves_again(repository: Path, tmp_path: Path) -> None:
    before = resolve_jars()
    (repository / "kafka-2.jar").write_bytes(b"another jar")
    ivy_file = tmp_path / "ivy.xml"
    ivy_file.write_text(IVY_FILE.replace('name="kafka" rev="1"', 'name="kafka" rev="2"'))

    assert [jar.name for jar in resolve_jars().broker] == ["kafka-2.jar"]
    assert before.broker[0].exists()


def test_a_failed_resolve_shows_what_ivy_said_and_leaves_no_half_cache(repository: Path, tmp_path: Path) -> None:
    (repository / "kafka-1.jar").unlink()

    with pytest.raises(JarResolutionError, match="test#kafka;1: not found"):
        resolve_jars()
    assert list((tmp_path / "cache").glob("*-*")) == []

    (repository / "kafka-1.jar").write_bytes(b"a jar")
    assert len(resolve_jars().broker) == 1


def test_what_a_killed_download_left_is_removed(repository: Path, tmp_path: Path) -> None:
    left_over = tmp_path / "cache" / "resolving-killed" / "broker"
    left_over.mkdir(parents=True)

    resolve_jars()

    assert not left_over.parent.exists()


def test_processes_that_resolve_at_once_share_one_download(repository: Path) -> None:
    command = [sys.executable, "-m", "streaming.jars"]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    outputs = [process.communicate(timeout=LIMIT_SECONDS)[0] for process in processes]

    assert [process.returncode for process in processes] == [0, 0, 0]
    assert sum("Jars downloaded: 2 of 2" in output for output in outputs) == 1


def test_missing_java_is_one_clear_line(without_java: Path) -> None:
    with pytest.raises(MissingPrerequisite, match=r"^Java was not found: install a Java 17 or later.*\.$"):
        java_executable()


@pytest.mark.parametrize(("says", "is_called"), [("1.8.0_392", "Java 8"), ("11.0.22", "Java 11")])
def test_java_that_is_too_old_is_one_clear_line(without_java: Path, says: str, is_called: str) -> None:
    java = _fake_java(without_java, says)

    with pytest.raises(MissingPrerequisite, match=rf"^{java} is {is_called}, Spark needs 17 or later: .*\.$"):
        java_executable()


@pytest.mark.parametrize("says", ["17.0.15", "21", "25-ea"])
def test_java_that_is_new_enough_is_used(without_java: Path, says: str) -> None:
    java = _fake_java(without_java, says)

    assert java_executable() == str(java)


def test_java_home_goes_before_the_path(without_java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake_java(without_java, "21")
    (tmp_path / "home" / "bin").mkdir(parents=True)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    with pytest.raises(MissingPrerequisite, match=r"home, which has no bin/java"):
        java_executable()

    java = _fake_java(tmp_path / "home" / "bin", "17")
    assert java_executable() == str(java)


def test_the_command_prints_a_missing_prerequisite_as_one_line(without_java: Path, repository: Path) -> None:
    command = [sys.executable, "-m", "streaming.jars"]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)

    assert outcome.returncode == 1
    assert outcome.stderr.count("\n") == 1
    assert outcome.stderr.startswith("Java was not found")


def _fake_java(folder: Path, version: str) -> Path:
    java = folder / "java"
    java.write_text(f"""#!/bin/sh\necho 'openjdk version "{version}"' >&2\n""")
    java.chmod(0o755)
    return java
