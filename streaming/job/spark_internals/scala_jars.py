"""Compile classes for Spark's JVM, with the Scala that pyspark ships, into jars in the cache."""

import hashlib
import subprocess
import tempfile
from pathlib import Path

import pyspark

from streaming.embedded.jars import JarResolutionError, Report, cache_folder, java_executable, locked

COMPILER = "scala.tools.nsc.Main"
COMPILER_OPTIONS = ("-Xss4m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
LIMIT_SECONDS = 300.0


def jar_path(name: str, source: Path) -> Path:
    """Where the jar of a source file is, or will be; another one for each version of the source and of pyspark."""
    key = hashlib.sha256(source.read_bytes() + pyspark.__version__.encode()).hexdigest()[:16]
    return cache_folder() / f"{name}-{key}.jar"


def compiled_jar(name: str, source: Path, report: Report | None = None) -> Path:
    """The jar of a source file, which the first call makes; any number of processes may call this at the same time.

    Raises:
        JarResolutionError: it cannot be compiled with this Spark, or the cache cannot be written.
        MissingPrerequisite: Java is missing.
    """
    jar = jar_path(name, source)
    if not jar.exists():
        try:
            jar.parent.mkdir(parents=True, exist_ok=True)
            with locked(jar.parent / "lock"):
                if not jar.exists():
                    _compile(jar, source, report)
        except OSError as error:
            raise JarResolutionError(f"{jar} cannot be written: {error.strerror or error}") from error
    return jar


def _compile(jar: Path, source: Path, report: Report | None) -> None:
    if report is not None:
        report(f"Compiling {source.name} (first start only).")
    class_path = Path(pyspark.__file__).parent / "jars" / "*"
    with tempfile.TemporaryDirectory(prefix="compiling-", dir=jar.parent) as folder:
        made = Path(folder, jar.name)
        command = [java_executable(), *COMPILER_OPTIONS, "-cp", str(class_path), COMPILER]
        command += ["-usejavacp", "-nowarn", "-d", str(made), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
        if done.returncode:
            raise JarResolutionError(f"{source} cannot be compiled:\n{done.stdout}{done.stderr}".rstrip())
        made.rename(jar)
