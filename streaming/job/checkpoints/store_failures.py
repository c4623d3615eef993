"""What the file system of a checkpoint refuses or fails at, as one line that says what to do."""

from collections.abc import Iterator
from typing import Any

from streaming.contract.errors import CannotRun
from streaming.job.spark_internals.java_objects import JavaFailure

SILENT = "nothing answers there: check the address (for s3a:// spark.hadoop.fs.s3a.endpoint), and the network"

ADVICE = {
    "UnknownStoreException": "create the bucket, or name another one",
    "NoAuthWithAWSException": (
        "give credentials in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or with a role or a credentials provider "
        "(spark.hadoop.fs.s3a.aws.credentials.provider)"
    ),
    "AccessDeniedException": "check the credentials, and that they may list, read, write and delete there",
    "ConnectException": "check the address (for s3a:// spark.hadoop.fs.s3a.endpoint), and that the store runs",
    "SocketTimeoutException": SILENT,
    "ConnectTimeoutException": SILENT,
    "UnknownHostException": "check the address (for s3a:// spark.hadoop.fs.s3a.endpoint)",
    "ClassNotFoundException": "Spark has no file system for this scheme: add its jars with spark.jars.packages",
    "UnsupportedFileSystemException": "Spark has no file system for this scheme: add its jars with spark.jars.packages",
}
"""What helps, by the simple name of an exception's class. A cause counts before what it has caused."""

NOISE = (" (Service: ", " (SDK Attempt Count: ", "\n")
"""Where the part of a message begins that tells a user nothing."""


def store_failure(location: str, failure: JavaFailure) -> CannotRun:
    """The error of a checkpoint that cannot be read or written."""
    return CannotRun(f"checkpoint {location}: {described_failure(failure)}")


def names_of_causes(failure: JavaFailure) -> list[str]:
    """The simple names of a failure's classes, its first cause first."""
    return [str(each.getClass().getSimpleName()) for each in list(_causes(failure.java_exception))[::-1]]


def described_failure(failure: JavaFailure) -> str:
    """A failure's first cause, and what to do about it where that is known."""
    causes = list(_causes(failure.java_exception))[::-1]
    names = names_of_causes(failure)
    reason = next((message for message in map(_message, causes) if message), names[0])
    advice = next((ADVICE[name] for name in names if name in ADVICE), None)
    return reason if advice is None else f"{reason}: {advice}"


def _causes(exception: Any) -> Iterator[Any]:
    while exception is not None:
        yield exception
        exception = exception.getCause()


def _message(exception: Any) -> str:
    message = str(exception.getMessage() or "")
    for begin in NOISE:
        message = message.partition(begin)[0]
    return message.rstrip(". ")
