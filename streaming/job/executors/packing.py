"""The job's code and the packages that it imports, packed for executors that have nothing but Spark and a Python.

Two archives, which Spark unpacks into the working folder of each executor (``spark.archives``): the packages, which
change with an upgrade only and are kept, and the code, which is packed at every start. A host needs a Python of the
driver's minor version, for which the packages were built.
"""

import hashlib
import os
import platform
import py_compile
import re
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from importlib import metadata
from importlib.util import cache_from_source
from pathlib import Path

from streaming.contract.distribution import DISTRIBUTION
from streaming.embedded.jars import Report, cache_folder, locked

EXTRA = "job"

BROUGHT_BY_SPARK = frozenset({"pyspark", "py4j"})
"""Executors have Spark's own copy, whose version is that of their jars."""

NOT_NEEDED = frozenset({"tests", "include", "__pycache__"})
"""Folders that no import of a package reads: a third of the bytes. What Python has compiled is compiled anew: it keeps
the time of its source, which an archive does not."""

COMPILED = "compiled"
"""What tells an archive with compiled modules from one of an earlier version, which had none."""

OURS = ("streaming", "coordinator_logic")

FASTEST = 1
"""The level of compression: with the default, packing takes four times as long for a tenth fewer bytes."""

EARLIEST_TIME = (1980, 1, 1, 0, 0, 0)
"""Of every file in an archive, so that the same files make the same bytes."""

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_OF_EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")


def packed_packages(report: Report, folder: Path) -> Path:
    """An archive of the packages that the job imports, in the cache; packed the first time.

    Where the cache cannot be written to, as in an image, it is packed at every start, into ``folder``.
    """
    found = {found.metadata["Name"]: found for found in _distributions()}
    versions = sorted(f"{name}=={found[name].version}" for name in found)
    content = "\n".join([python_name(), platform.machine(), COMPILED, *versions])
    kept = cache_folder()
    existing = next(each for each in (kept, *kept.parents) if each.exists())
    if os.access(existing, os.W_OK):
        folder = kept
    archive = folder / f"packages-{hashlib.sha256(content.encode()).hexdigest()[:16]}.zip"
    if archive.exists():
        return archive
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "packages-lock"):
        if not archive.exists():
            report("Packing the Python packages for the executors.")
            files = {entry: path for each in found.values() for entry, path in _files(each)}
            _pack(archive, files, compiles=True)
    return archive


def packed_code(folder: Path) -> Path:
    """An archive of the job's own code, in this folder."""
    archive = folder / "code.zip"
    root = Path(__file__).parents[3]
    files = (path for name in OURS for path in sorted((root / name).rglob("*")) if path.is_file())
    _pack(archive, {path.relative_to(root).as_posix(): path for path in files if not NOT_NEEDED & {*path.parts}})
    return archive


def python_name() -> str:
    """The name of the Python that a host needs, such as ``python3.11``."""
    return f"python{sys.version_info.major}.{sys.version_info.minor}"


def _distributions() -> Iterator[metadata.Distribution]:
    """The installed distributions that the job needs, without those of Spark."""
    waiting, seen = [(DISTRIBUTION, EXTRA)], {*BROUGHT_BY_SPARK, DISTRIBUTION}
    while waiting:
        name, extra = waiting.pop()
        for requirement in metadata.requires(name) or ():
            of_extra = _OF_EXTRA.search(requirement)
            needed = _NAME.match(requirement)
            if needed is None or needed[0] in seen or (of_extra is not None and of_extra[1] != extra):
                continue
            seen.add(needed[0])
            try:
                found = metadata.distribution(needed[0])
            except metadata.PackageNotFoundError:
                # Another platform or Python needs it.
                continue
            yield found
            waiting.append((needed[0], ""))


def _files(distribution: metadata.Distribution) -> Iterator[tuple[str, Path]]:
    """The files of a distribution, by their paths in the folder of packages."""
    for entry in distribution.files or ():
        if ".." not in entry.parts and not NOT_NEEDED & {*entry.parts}:
            yield entry.as_posix(), Path(str(entry.locate()))


def _pack(archive: Path, files: dict[str, Path], *, compiles: bool = False) -> None:
    """Write an archive under another name first, so that it is complete or absent.

    ``compiles``: adds each module as Python compiles it, which takes some seconds, and saves a second or two of each
    executor's start. The code is small, and packed while the job starts.
    """
    descriptor, unfinished = tempfile.mkstemp(dir=archive.parent, suffix=".unfinished")
    try:
        with os.fdopen(descriptor, "wb") as file, zipfile.ZipFile(file, "w") as written:
            for name, path in sorted(files.items()):
                _add(written, name, path.read_bytes())
                if compiles and path.suffix == ".py" and (compiled := _compiled(path)):
                    _add(written, cache_from_source(name), compiled)
        Path(unfinished).replace(archive)
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, EARLIEST_TIME)
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, content, compresslevel=FASTEST)


def _compiled(source: Path) -> bytes | None:
    """A module compiled for this Python, which reads it without a look at the source; None for no valid module."""
    with tempfile.TemporaryDirectory() as folder:
        compiled = Path(folder, "compiled.pyc")
        try:
            mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
            py_compile.compile(str(source), str(compiled), doraise=True, invalidation_mode=mode, quiet=2)
        except py_compile.PyCompileError:
            return None
        return compiled.read_bytes()
