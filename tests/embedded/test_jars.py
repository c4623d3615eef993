"""Java and the jars. Ivy resolves from a folder, so that no test needs a network."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from streaming.embedded.jars import JarResolutionError, MissingPrerequisite, java_executable, resolve_jars
from tests.support.waiting import LIMIT_SECONDS

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
    """A folder with two jars that is Ivy's only repository, and an empty cache."""
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
    """An empty folder, the only one on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return folder


@pytest.mark.jvm
def test_the_projects_own_jars_resolve() -> None:
    jars = resolve_jars()

    assert any(jar.name.startswith("hadoop-bare-naked-local-fs-") for jar in jars.connector)
    assert {"kafka-clients", "spark-sql-kafka-0-10_2.13"} <= {jar.name.rsplit("-", 1)[0] for jar in jars.connector}
    assert any(jar.name.startswith("kafka_2.13-") for jar in jars.broker)


@pytest.mark.jvm
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
    assert [jar.read_bytes() for jar in first.connector] == [b"a jar"]


@pytest.mark.jvm
def test_a_changed_ivy_file_resolves_again(repository: Path, tmp_path: Path) -> None:
    before = resolve_jars()
    (repository / "kafka-2.jar").write_bytes(b"another jar")
    ivy_file = tmp_path / "ivy.xml"
    ivy_file.write_text(IVY_FILE.replace('name="kafka" rev="1"', 'name="kafka" rev="2"'))

    assert [jar.name for jar in resolve_jars().broker] == ["kafka-2.jar"]
    assert before.broker[0].exists()


@pytest.mark.jvm
def test_a_failed_download_shows_ivys_output_and_leaves_no_partial_cache(repository: Path, tmp_path: Path) -> None:
    (repository / "kafka-1.jar").unlink()

    with pytest.raises(JarResolutionError, match="test#kafka;1: not found"):
        resolve_jars()
    assert list((tmp_path / "cache").glob("*-*")) == []

    (repository / "kafka-1.jar").write_bytes(b"a jar")
    assert len(resolve_jars().broker) == 1


@pytest.mark.jvm
def test_files_of_a_killed_download_are_removed(repository: Path, tmp_path: Path) -> None:
    left_over = tmp_path / "cache" / "resolving-killed" / "broker"
    left_over.mkdir(parents=True)

    resolve_jars()

    assert not left_over.parent.exists()


@pytest.mark.jvm
def test_concurrent_processes_share_one_download(repository: Path) -> None:
    command = [sys.executable, "-m", "streaming.embedded.jars"]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    outputs = [process.communicate(timeout=LIMIT_SECONDS)[0] for process in processes]

    assert [process.returncode for process in processes] == [0, 0, 0]
    assert sum("Jars downloaded: 2 of 2" in output for output in outputs) == 1


def test_missing_java_is_reported_in_one_line(without_java: Path) -> None:
    with pytest.raises(MissingPrerequisite, match=r"^Java was not found: install a Java 17 or later.*\.$"):
        java_executable()


@pytest.mark.parametrize(("reported", "name"), [("1.8.0_392", "Java 8"), ("11.0.22", "Java 11")])
def test_a_java_that_is_too_old_is_reported_in_one_line(without_java: Path, reported: str, name: str) -> None:
    java = _fake_java(without_java, reported)

    with pytest.raises(MissingPrerequisite, match=rf"^{java} is {name}, but Spark needs 17 or later: .*\.$"):
        java_executable()


@pytest.mark.parametrize("reported", ["17.0.15", "21", "25-ea"])
def test_a_java_that_is_new_enough_is_used(without_java: Path, reported: str) -> None:
    java = _fake_java(without_java, reported)

    assert java_executable() == str(java)


def test_java_home_overrides_the_path(without_java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake_java(without_java, "21")
    (tmp_path / "home" / "bin").mkdir(parents=True)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    with pytest.raises(MissingPrerequisite, match=r"home, which has no bin/java"):
        java_executable()

    java = _fake_java(tmp_path / "home" / "bin", "17")
    assert java_executable() == str(java)


def test_the_module_prints_a_missing_prerequisite_as_one_line(without_java: Path, repository: Path) -> None:
    command = [sys.executable, "-m", "streaming.embedded.jars"]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)

    assert outcome.returncode == 1
    assert outcome.stderr.count("\n") == 1
    assert outcome.stderr.startswith("Java was not found")


def _fake_java(folder: Path, version: str) -> Path:
    java = folder / "java"
    java.write_text(f"""#!/bin/sh\necho 'openjdk version "{version}"' >&2\n""")
    java.chmod(0o755)
    return java
