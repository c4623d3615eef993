"""The class that writes the files of a checkpoint in an object store: it is compiled once, into the cache."""

import zipfile
from pathlib import Path

import pytest

from streaming.embedded.jars import JarResolutionError
from streaming.job.spark_internals.store_files import compilation
from streaming.job.spark_internals.store_files.compilation import CLASS, store_files_jar


@pytest.mark.jvm
def test_the_class_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUP_COORDINATOR_CACHE", str(tmp_path / "cache"))
    lines: list[str] = []
    jar = store_files_jar(lines.append)
    with zipfile.ZipFile(jar) as archive:
        assert f"{CLASS.replace('.', '/')}.class" in archive.namelist()
    made_at = jar.stat().st_mtime_ns
    assert store_files_jar(lines.append).stat().st_mtime_ns == made_at
    assert lines == ["Compiling StoreFiles.scala (first start only)."]


@pytest.mark.jvm
def test_what_the_compiler_says_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUP_COORDINATOR_CACHE", str(tmp_path / "cache"))
    source = tmp_path / "Broken.scala"
    source.write_text("class Broken extends Missing")
    monkeypatch.setattr(compilation, "SOURCE", source)
    with pytest.raises(JarResolutionError, match=r"(?s)Broken.scala cannot be compiled:.*not found: type Missing"):
        store_files_jar()


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("GROUP_COORDINATOR_CACHE", str(tmp_path / "file"))
    with pytest.raises(JarResolutionError, match="cannot be written: "):
        store_files_jar()
