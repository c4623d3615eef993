"""The map of groups, beside a plain one: every version of it, and which groups are due."""

import subprocess
from pathlib import Path

import pyspark
import pytest

from streaming.embedded.jars import java_executable, resolve_jars
from streaming.job.options import JobOptions
from streaming.job.session import extra_class_path, spark_settings
from streaming.job.spark_internals.group_map import compilation
from streaming.job.spark_internals.group_map.compilation import (
    EXTENSION,
    group_map_jars,
    make_group_map_jar,
    needs_group_map_jar,
)
from streaming.job.spark_internals.registry import GROUP_MAP, OFF_VARIABLE
from streaming.job.spark_internals.scala_jars import COMPILER, COMPILER_OPTIONS

CHECK = Path(__file__).with_name("GroupMapCheck.scala")
ROUNDS = 100
LIMIT_SECONDS = 120.0

EXTENSIONS = "spark.sql.extensions"


def java(class_path: str, *arguments: str) -> str:
    """Run a program in a JVM with pyspark's jars, after ``class_path``; returns what it prints."""
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    command = [java_executable(), *COMPILER_OPTIONS, "-cp", f"{class_path}:{jars}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.jvm
def test_every_version_has_what_a_plain_map_has_and_lists_the_groups_that_are_due(tmp_path: Path) -> None:
    make_group_map_jar()
    (jar,) = group_map_jars()
    compiled = tmp_path / "check.jar"
    java(str(jar), COMPILER, "-usejavacp", "-nowarn", "-d", str(compiled), str(CHECK))
    class_path = f"{compiled}:{jar}"
    printed = java(class_path, "org.apache.spark.sql.execution.streaming.state.GroupMapCheck", str(ROUNDS))
    assert printed.startswith(f"{ROUNDS} rounds, ")


@pytest.fixture
def options(tmp_path: Path) -> JobOptions:
    return JobOptions(bootstrap_servers="127.0.0.1:1", checkpoint=str(tmp_path))


@pytest.mark.jvm
def test_it_is_ahead_of_all_other_jars_of_a_driver_on_one_host(
    options: JobOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_group_map_jar()
    (jar,) = group_map_jars()
    jars = resolve_jars()
    settings = spark_settings(options, jars)
    assert settings["spark.driver.extraClassPath"].startswith(f"{jar}:")
    assert settings[EXTENSIONS] == EXTENSION

    monkeypatch.setenv(OFF_VARIABLE, GROUP_MAP.name)
    assert not needs_group_map_jar()
    settings = spark_settings(options, jars)
    assert settings["spark.driver.extraClassPath"] == extra_class_path(jars)
    assert "group-map" not in extra_class_path(jars)
    assert EXTENSIONS not in settings


@pytest.mark.jvm
def test_a_start_does_not_wait_for_the_compiler(options: JobOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    jars = resolve_jars()
    monkeypatch.setattr(compilation, "NAME", "not-made-yet")
    assert needs_group_map_jar()
    assert EXTENSIONS not in spark_settings(options, jars)
