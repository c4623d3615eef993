"""The file system of a checkpoint: the jars that Spark needs for it, and settings."""

from dataclasses import replace
from urllib.parse import urlsplit

from streaming.contract.errors import CannotRun
from streaming.embedded.jars import Jars, Report, resolve_jars, resolve_s3a_jars
from streaming.job.spark_internals.registry import STORE_FILES, is_used
from streaming.job.spark_internals.store_files.compilation import store_files_jar

S3A = "s3a"
OTHER_NAMES_OF_S3A = ("s3", "s3n")


def scheme_of(location: str) -> str:
    """The scheme of a location; empty for a path."""
    return urlsplit(location).scheme


def job_jars(checkpoint: str, report: Report | None = None) -> Jars:
    """The jars of a job with this checkpoint; those for its file system are with the connector's.

    Raises:
        CannotRun: Spark does not know the checkpoint's scheme by this name.
        JarResolutionError, MissingPrerequisite: see :func:`streaming.embedded.jars.resolve_jars`.
    """
    jars, scheme = resolve_jars(report), scheme_of(checkpoint)
    if scheme in OTHER_NAMES_OF_S3A:
        raise CannotRun(f"checkpoint {checkpoint}: Spark's name of this store is {S3A}://")
    if scheme != S3A:
        return jars
    own = [store_files_jar(report)] if is_used(STORE_FILES) else []
    return replace(jars, connector=[*jars.connector, *resolve_s3a_jars(report), *own])
