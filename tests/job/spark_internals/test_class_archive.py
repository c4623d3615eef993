"""The class archives: used where they fit, refused where they are damaged."""

import os
from pathlib import Path

import pytest

from streaming.contract.errors import CannotRun
from streaming.embedded.broker import EmbeddedBroker
from streaming.embedded.class_archive import BROKER, archive_path
from streaming.embedded.jars import resolve_jars
from streaming.job.make_class_archive import check_class_archive, make_class_archive
from streaming.job.options import JobOptions
from streaming.job.session import extra_class_path, spark_session, spark_settings
from streaming.job.spark_internals.class_archive import class_archive

pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module")
def archive() -> Path:
    """The archive; `make test` has made it already."""
    make_class_archive(print)
    found = class_archive(extra_class_path(resolve_jars()))
    assert found is not None
    return found


def test_the_jobs_jvm_loads_its_classes_from_the_archive(archive: Path, tmp_path: Path) -> None:
    log = tmp_path / "classes.log"
    chosen = {"driver.memory": "512m", "driver.defaultJavaOptions": f"-XX:+UseSerialGC -Xlog:class+load:file={log}"}
    options = JobOptions(bootstrap_servers="127.0.0.1:1", checkpoint=str(tmp_path), spark=chosen)
    with spark_session(spark_settings(options, resolve_jars())):
        pass
    loaded = log.read_text()
    assert loaded.count("source: shared objects file (top)") > 2_000
    assert loaded.count(".jar\n") < 20


def test_an_embedded_broker_uses_an_archive_of_its_own(archive: Path) -> None:
    of_broker = archive_path(BROKER, resolve_jars().broker)
    assert of_broker != archive
    with EmbeddedBroker() as broker:
        assert str(of_broker) in Path(f"/proc/{broker.pid}/maps").read_text()


def test_other_jars_have_no_archive(archive: Path) -> None:
    class_path = extra_class_path(resolve_jars())
    assert class_archive(os.pathsep.join([class_path, str(archive)])) is None


def test_half_an_archive_is_refused(archive: Path, tmp_path: Path) -> None:
    check_class_archive(archive)
    half = tmp_path / archive.name
    with archive.open("rb") as whole:
        half.write_bytes(whole.read(archive.stat().st_size // 2))
    with pytest.raises(CannotRun, match="cannot use the class archive"):
        check_class_archive(half)
