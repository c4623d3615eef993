"""Compile the class with which Spark writes the files of a checkpoint at s3a://."""

import hashlib
import subprocess
import tempfile
from pathlib import Path

import pyspark

from streaming.embedded.jars import JarResolutionError, Report, cache_folder, java_executable, locked

CLASS = "groupcoordinator.StoreFiles"
SOURCE = Path(__file__).with_name("StoreFiles.scala")

COMPILER = "scala.tools.nsc.Main"
COMPILER_OPTIONS = ("-Xss4m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
LIMIT_SECONDS = 300.0


def store_files_jar(report: Report | None = None) -> Path:
    """The jar with :data:`CLASS`, which the first call makes; any number of processes may call this at the same time.

    Raises:
        JarResolutionError: it cannot be compiled with this Spark, or the cache cannot be written.
        MissingPrerequisite: Java is missing.
    """
    key = hashlib.sha256(SOURCE.read_bytes() + pyspark.__version__.encode()).hexdigest()[:16]
    jar = cache_folder() / f"store-files-{key}.jar"
    if not jar.exists():
        try:
            jar.parent.mkdir(parents=True, exist_ok=True)
            with locked(jar.parent / "lock"):
                if not jar.exists():
                    _compile(jar, report)
        except OSError as error:
            raise JarResolutionError(f"{jar} cannot be written: {error.strerror or error}") from error
    return jar


def _compile(jar: Path, report: Report | None) -> None:
    if report is not None:
        report(f"Compiling {SOURCE.name} (first start only).")
    class_path = Path(pyspark.__file__).parent / "jars" / "*"
    with tempfile.TemporaryDirectory(prefix="compiling-", dir=jar.parent) as folder:
        made = Path(folder, jar.name)
        command = [java_executable(), *COMPILER_OPTIONS, "-cp", str(class_path), COMPILER]
        command += ["-usejavacp", "-nowarn", "-d", str(made), str(SOURCE)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
        if done.returncode:
            raise JarResolutionError(f"{SOURCE} cannot be compiled:\n{done.stdout}{done.stderr}".rstrip())
        made.rename(jar)
