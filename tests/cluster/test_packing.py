"""What travels to the executors: the code and the packages that it imports, and where their archives are kept."""

import importlib
import os
import zipfile
from importlib import metadata
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from streaming.job.executors import packing
from streaming.job.executors.packing import packed_code, packed_packages


def names_in(archive: Path) -> set[str]:
    with zipfile.ZipFile(archive) as opened:
        return set(opened.namelist())


def test_the_code_is_packed_without_what_was_compiled_and_with_the_same_bytes_again(tmp_path: Path) -> None:
    names = names_in(packed_code(tmp_path))
    assert {"streaming/job/operator.py", "coordinator_logic/step.py"} <= names
    assert not [name for name in names if "__pycache__" in name or name.startswith("tests/")]
    before = (tmp_path / "code.zip").read_bytes()
    assert packed_code(tmp_path).read_bytes() == before


def test_the_packages_are_those_of_the_job_without_sparks_own() -> None:
    names = {found.metadata["Name"] for found in packing._distributions()}
    assert {"msgspec", "pyarrow", "pandas", "confluent-kafka"} <= names
    assert not names & {"pyspark", "py4j", "pytest", "kio"}


@pytest.mark.parametrize("is_writable", [True, False])
def test_packages_are_packed_once_into_the_cache_or_where_that_cannot_be_written_to_with_each_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_writable: bool
) -> None:
    monkeypatch.setenv("GROUP_COORDINATOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(packing, "_distributions", lambda: iter([metadata.distribution("msgspec")]))
    monkeypatch.setattr(os, "access", lambda *_: is_writable)
    reported: list[str] = []
    archives = []
    for start in ("first", "second"):
        (tmp_path / start).mkdir()
        archives.append(packed_packages(reported.append, tmp_path / start))
    assert {"msgspec/__init__.py", cache_from_source("msgspec/__init__.py")} <= names_in(archives[0])
    folders = [archive.parent for archive in archives]
    assert folders == ([tmp_path / "cache"] * 2 if is_writable else [tmp_path / "first", tmp_path / "second"])
    assert len(reported) == (1 if is_writable else 2)


def test_python_reads_a_compiled_module_of_the_packages_without_a_look_at_its_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "greeting.py"
    source.write_text("WORD = 'compiled'\n")
    monkeypatch.setattr(packing, "_files", lambda _: iter([("greeting.py", source)]))
    monkeypatch.setattr(packing, "_distributions", lambda: iter([metadata.distribution("msgspec")]))
    monkeypatch.setenv("GROUP_COORDINATOR_CACHE", str(tmp_path / "cache"))
    unpacked = tmp_path / "unpacked"
    with zipfile.ZipFile(packed_packages(lambda _: None, tmp_path)) as archive:
        archive.extractall(unpacked)
    (unpacked / "greeting.py").write_text("WORD = 'source'\n")
    monkeypatch.syspath_prepend(unpacked)
    assert importlib.import_module("greeting").WORD == "compiled"
