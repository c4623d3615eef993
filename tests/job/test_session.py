"""The Spark session: the settings of users reach it, the defaults of Hadoop do not."""

import os
import shlex
from pathlib import Path

import pytest

from streaming.contract.errors import CannotRun
from streaming.embedded.jars import Jars, resolve_jars
from streaming.job.options import JobOptions
from streaming.job.session import (
    ADDRESS_VARIABLE,
    PYTHON_VARIABLE,
    WAREHOUSE,
    YOUNG_GENERATION,
    spark_session,
    spark_settings,
    with_temporary_folder,
)
from streaming.job.spark_internals.hadoop_defaults import drop_hadoop_defaults
from streaming.job.spark_internals.java_objects import hadoop_configuration, java_virtual_machine
from streaming.job.spark_internals.registry import left_out

OWN_VARIABLES = (PYTHON_VARIABLE, ADDRESS_VARIABLE)

MAX_PROPERTIES = 100
"""Spark's own properties are among them; Hadoop's defaults are 1,100."""

CORE_SITE = """<configuration>
  <property><name>fs.s3a.endpoint</name><value>https://storage.example</value></property>
  <property><name>fs.s3a.secret.key</name><value>hidden</value></property>
  <property><name>example.folder</name><value>${hadoop.tmp.dir}/example</value></property>
  <property><name>io.map.index.skip</name><value>7</value></property>
</configuration>"""


@pytest.mark.jvm
def test_hadoops_defaults_are_dropped_and_the_users_files_and_options_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "core-site.xml").write_text(CORE_SITE)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    options = JobOptions(
        bootstrap_servers="127.0.0.1:1",
        checkpoint=str(tmp_path / "checkpoint"),
        driver_memory="512m",
        spark={
            "hadoop.example.option": "yes",
            "hadoop.example.text": " \\a=b:c # d! ü\n",
            "driver.extraJavaOptions": """-Dexample.one="a b" -Xss2m -Dexample.two='say "c"'""",
        },
    )
    settings = spark_settings(options, resolve_jars())
    with spark_session(settings) as spark:
        properties = java_virtual_machine(spark).java.lang.System
        assert properties.getProperty("example.one") == "a b"
        assert properties.getProperty("example.two") == 'say "c"'
        assert properties.getProperty("spark.hadoop.example.text").strip() == "\\a=b:c # d! ü"
        before = hadoop_configuration(spark).size()
        drop_hadoop_defaults(spark)
        session = spark._jsparkSession.sessionState()
        for configuration in (hadoop_configuration(spark), session.newHadoopConf()):
            assert configuration.size() < MAX_PROPERTIES < before
            assert configuration.get("fs.file.impl") == settings["spark.hadoop.fs.file.impl"]
            assert configuration.get("example.option") == "yes"
            assert configuration.get("example.text").strip() == "\\a=b:c # d! ü"
            assert configuration.get("fs.s3a.endpoint") == "https://storage.example"
            assert configuration.get("fs.s3a.secret.key") == "hidden"
            assert configuration.get("io.map.index.skip") == "7"
            assert configuration.get("example.folder").endswith("/example")
            assert "$" not in configuration.get("example.folder")
            assert configuration.get("hadoop.tmp.dir") is None


def test_the_jvm_has_the_folder_for_temporary_files_unless_the_user_names_another() -> None:
    name = "spark.driver.extraJavaOptions"
    changed = with_temporary_folder({name: "-Xss2m"}, Path("/tmp/a b"))
    assert shlex.split(changed[name]) == ["-Xss2m", "-Djava.io.tmpdir=/tmp/a b"]
    own = {name: "-Djava.io.tmpdir=/large", WAREHOUSE: "/warehouse"}
    assert with_temporary_folder(own, Path("/tmp/a")) == own
    assert with_temporary_folder({}, Path("/tmp/a"))[WAREHOUSE] == "/tmp/a/spark-warehouse"
    # A socket's path has at most 107 bytes.
    assert with_temporary_folder({}, Path("/tmp") / ("a" * 60))["spark.python.unix.domain.socket.dir"] == "/tmp"


@pytest.mark.parametrize(("memory", "has_it"), [("256m", False), ("512m", True), ("1g", True), ("2G", True)])
def test_the_young_generation_has_a_least_size_unless_the_heap_is_small(memory: str, has_it: bool) -> None:
    options = JobOptions(bootstrap_servers="127.0.0.1:1", checkpoint="/checkpoint", driver_memory=memory)
    flags = spark_settings(options, Jars([], []))["spark.driver.defaultJavaOptions"].split()
    assert (YOUNG_GENERATION in flags) == has_it


@pytest.mark.jvm
def test_a_session_may_follow_one_that_has_ended_with_an_error_and_uses_every_internal(tmp_path: Path) -> None:
    options = JobOptions(bootstrap_servers="127.0.0.1:1", checkpoint=str(tmp_path / "one"), driver_memory="512m")
    settings = spark_settings(options, resolve_jars())
    before = [os.environ.get(name) for name in OWN_VARIABLES]
    with pytest.raises(RuntimeError, match="within the block"), spark_session(settings):
        raise RuntimeError("within the block")
    assert [os.environ.get(name) for name in OWN_VARIABLES] == before, "a session on a cluster needs others"
    with spark_session(settings) as spark:
        assert spark.range(3).count() == 3
        assert left_out(spark) == {}


@pytest.mark.jvm
def test_a_session_on_one_host_does_without_the_name_of_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    options = JobOptions(bootstrap_servers="127.0.0.1:1", checkpoint=str(tmp_path / "one"), driver_memory="512m")
    with spark_session(spark_settings(options, resolve_jars())) as spark:
        assert java_virtual_machine(spark).org.apache.spark.util.Utils.localHostName() in ("127.0.0.1", "localhost")


@pytest.mark.jvm
@pytest.mark.parametrize(
    ("setting", "value", "line"),
    [
        # Spark's launcher refuses it, before there is a JVM to ask.
        ("spark.executor.memory", "lots", "Spark does not start: Executor memory must be a positive number"),
        # The JVM that refuses it is ended then.
        ("spark.scheduler.mode", "NONE_SUCH", "Spark: .*NONE_SUCH"),
    ],
)
def test_why_spark_does_not_start_is_one_line(setting: str, value: str, line: str, tmp_path: Path) -> None:
    options = JobOptions(bootstrap_servers="127.0.0.1:1", checkpoint=str(tmp_path / "one"), driver_memory="512m")
    settings = {**spark_settings(options, resolve_jars()), setting: value}
    with pytest.raises(CannotRun, match=f"^{line}[^\n]*$"), spark_session(settings):
        pass
