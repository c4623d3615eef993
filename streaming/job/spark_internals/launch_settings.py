"""Settings for a JVM that do not appear on its command line, which every user of the machine can read."""

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

SUBMIT_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
"""The environment variable with the arguments that pyspark gives to ``spark-submit``."""

JAVA_OPTIONS = ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions")
"""The settings that Spark's launcher copies to the JVM's command line."""

SECRET_VARIABLES = ("GROUP_COORDINATOR_KAFKA_", "GROUP_COORDINATOR_LIBRDKAFKA_")
"""Prefixes of the options' variables that may hold passwords. The JVM and the Python workers do not need them."""


@contextmanager
def launch_settings(settings: Mapping[str, str]) -> Iterator[None]:
    """Give the settings to a ``spark-submit`` that pyspark starts within the block, in files of mode 0600.

    Spark's launcher and the JVM read the files as they start; the files are removed with the block. The JVM's
    environment lacks the variables of the job's Kafka settings. The block changes ``os.environ``, for all threads.
    """
    with TemporaryDirectory(prefix="group-coordinator-settings-") as folder:
        properties = dict(settings)
        for key in JAVA_OPTIONS:
            if key in properties:
                properties[key] = _without_definitions(properties[key], Path(folder) / f"{key}.txt")
        file = Path(folder) / "spark.conf"
        _write_private(file, "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in properties.items()))
        # Without the second argument, a file of settings replaces the user's spark-defaults.conf.
        arguments = f"--properties-file {shlex.quote(str(file))} --load-spark-defaults"
        kept = dict(os.environ)
        for name in kept:
            if name.startswith(SECRET_VARIABLES):
                del os.environ[name]
        os.environ[SUBMIT_ARGUMENTS] = f"{arguments} {kept.get(SUBMIT_ARGUMENTS, 'pyspark-shell')}"
        try:
            yield
        finally:
            if SUBMIT_ARGUMENTS not in kept:
                del os.environ[SUBMIT_ARGUMENTS]
            os.environ.update(kept)


def _without_definitions(java_options: str, file: Path) -> str:
    """Move the options that define a system property (``-Dname=value``) to a file, which Java reads."""
    options = shlex.split(java_options)
    definitions = [option for option in options if option.startswith("-D")]
    if not definitions:
        return java_options
    _write_private(file, "".join(f"{_quoted(option)}\n" for option in definitions))
    others = [option for option in options if not option.startswith("-D")]
    return shlex.join([*others, f"-XX:VMOptionsFile={file}"])


def _quoted(option: str) -> str:
    """An option for a file of Java's options, where quotes of one kind may contain those of the other."""
    return "".join(f"'{part}'" if '"' in part else f'"{part}"' for part in re.findall(r'[^"]+|"+', option))


def _escaped(text: str) -> str:
    """A key or a value in Java's format of properties."""
    escaped = re.sub(r"([\\=:#! ])", r"\\\1", text)
    return escaped.replace("\n", r"\n").replace("\r", r"\r").replace("\t", r"\t").replace("\f", r"\f")


def _write_private(file: Path, text: str) -> None:
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
        out.write(text)
