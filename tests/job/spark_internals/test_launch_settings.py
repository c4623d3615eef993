"""Settings of Spark and Kafka, secrets among them, do not appear where other users can read them."""

import os
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from streaming.embedded.broker import EmbeddedBroker
from streaming.job.spark_internals.launch_settings import SUBMIT_ARGUMENTS, launch_settings
from tests.support.coordinator_process import QUICK, CoordinatorProcess
from tests.support.processes import command_line, process_tree

SECRET = "h1dden-everywhere"


def test_settings_are_in_files_without_a_name_which_end_with_the_launch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(SUBMIT_ARGUMENTS, raising=False)
    monkeypatch.setenv("GROUP_COORDINATOR_KAFKA_SSL_KEY_PASSWORD", SECRET)
    java = f"-Xss2m -Dkey={SECRET}"
    settings = {"spark.hadoop.fs.s3a.secret.key": SECRET, "spark.driver.extraJavaOptions": java}
    with launch_settings(settings, tmp_path) as descriptors:
        words = os.environ[SUBMIT_ARGUMENTS].split()
        assert words[words.index("--properties-file") + 1] == f"/dev/fd/{descriptors[1]}"
        assert list(tmp_path.iterdir()) == []
        assert [stat.S_IMODE(os.fstat(each).st_mode) & 0o077 for each in descriptors] == [0, 0]
        # The launcher and the JVM each read from the beginning.
        for _ in range(2):
            for each in descriptors:
                found = subprocess.run(
                    ["cat", f"/dev/fd/{each}"], pass_fds=descriptors, capture_output=True, text=True, check=True
                )
                assert SECRET in found.stdout
        assert words[-1] == "pyspark-shell"
        assert "GROUP_COORDINATOR_KAFKA_SSL_KEY_PASSWORD" not in os.environ
        assert tempfile.gettempdir() == str(tmp_path)
    assert tempfile.gettempdir() != str(tmp_path)
    for each in descriptors:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(each)
    assert SUBMIT_ARGUMENTS not in os.environ
    assert os.environ["GROUP_COORDINATOR_KAFKA_SSL_KEY_PASSWORD"] == SECRET


@pytest.fixture
def with_secrets(broker: EmbeddedBroker, tmp_path: Path) -> Iterator[CoordinatorProcess]:
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    options = {
        "spark.hadoop.fs.s3a.secret.key": SECRET,
        "spark.driver.extraJavaOptions": f"-Dexample.password={SECRET} -Dexample.words='{SECRET} and more'",
        "kafka.sasl.jaas.config": f'{login} username="job" password="{SECRET}";',
    }
    with CoordinatorProcess(
        broker.bootstrap_servers,
        tmp_path,
        {**QUICK, **options},
        environment={"GROUP_COORDINATOR_KAFKA_SSL_KEY_PASSWORD": SECRET},
    ) as process:
        process.start()
        yield process


def environment(pid: int) -> bytes:
    """The environment of a process; empty if the process has ended."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return (Path("/proc") / str(pid) / "environ").read_bytes()
    return b""


def test_no_secret_is_on_a_command_line_or_in_the_environment_of_the_jvm_and_the_workers(
    with_secrets: CoordinatorProcess,
) -> None:
    job, *others = process_tree(with_secrets.pid)
    assert len(others) >= 2, "the JVM and a Python worker"
    for pid in (job, *others):
        assert SECRET.encode() not in b" ".join(command_line(pid))
    for pid in others:
        assert SECRET.encode() not in environment(pid)
    assert not any(SECRET in line for line in with_secrets.output)
