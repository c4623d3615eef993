"""Settings for a JVM that do not appear on its command line, which every user of the machine can read."""

import os
import re
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

SUBMIT_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
"""The environment variable with the arguments that pyspark gives to ``spark-submit``."""

JAVA_OPTIONS = ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions")
"""The settings that Spark's launcher copies to the JVM's command line."""

SECRET_VARIABLES = ("GROUP_COORDINATOR_KAFKA_", "GROUP_COORDINATOR_LIBRDKAFKA_")
"""Prefixes of the options' variables that may hold passwords. The JVM and the Python workers do not need them."""


@contextmanager
def launch_settings(settings: Mapping[str, str], temporary: Path) -> Iterator[tuple[int, ...]]:
    """Give the settings to a ``spark-submit`` that pyspark starts within the block, in files without a name.

    Spark's launcher and the JVM read the files as they start, both from the beginning, so a pipe would not do. They
    need the file descriptors that the block gets. pyspark keeps its own files in ``temporary`` meanwhile. The JVM's
    environment lacks the variables of the job's Kafka settings. The block changes ``os.environ`` and Python's folder
    for temporary files, for all threads.
    """
    with ExitStack() as files:

        def written(text: str) -> int:
            # It has no name from the start: nothing is left of it by a ``kill -9``.
            file = files.enter_context(tempfile.TemporaryFile("w", encoding="utf-8", dir=temporary))
            file.write(text)
            file.flush()
            return file.fileno()

        properties, descriptors = dict(settings), list[int]()
        for key in JAVA_OPTIONS:
            if definitions := _definitions(properties.get(key, "")):
                descriptors.append(written("".join(f"{_quoted(option)}\n" for option in definitions)))
                others = [option for option in shlex.split(properties[key]) if option not in definitions]
                properties[key] = shlex.join([*others, f"-XX:VMOptionsFile={_path(descriptors[-1])}"])
        descriptors.append(
            written("".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in properties.items()))
        )
        # Without the second argument, a file of settings replaces the user's spark-defaults.conf.
        arguments = f"--properties-file {_path(descriptors[-1])} --load-spark-defaults"
        kept, kept_folder = dict(os.environ), tempfile.tempdir
        tempfile.tempdir = str(temporary)
        for name in kept:
            if name.startswith(SECRET_VARIABLES):
                del os.environ[name]
        os.environ[SUBMIT_ARGUMENTS] = f"{arguments} {kept.get(SUBMIT_ARGUMENTS, 'pyspark-shell')}"
        try:
            yield tuple(descriptors)
        finally:
            tempfile.tempdir = kept_folder
            if SUBMIT_ARGUMENTS not in kept:
                del os.environ[SUBMIT_ARGUMENTS]
            os.environ.update(kept)


def _definitions(java_options: str) -> list[str]:
    """The options that define a system property (``-Dname=value``)."""
    return [option for option in shlex.split(java_options) if option.startswith("-D")]


def _path(descriptor: int) -> str:
    """The path under which a child process opens an inherited file, also one without a name."""
    return f"/dev/fd/{descriptor}"


def _quoted(option: str) -> str:
    """An option for a file of Java's options, where quotes of one kind may contain those of the other."""
    return "".join(f"'{part}'" if '"' in part else f'"{part}"' for part in re.findall(r'[^"]+|"+', option))


def _escaped(text: str) -> str:
    """A key or a value in Java's format of properties."""
    escaped = re.sub(r"([\\=:#! ])", r"\\\1", text)
    return escaped.replace("\n", r"\n").replace("\r", r"\r").replace("\t", r"\t").replace("\f", r"\f")
