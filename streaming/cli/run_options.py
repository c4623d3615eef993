"""The options of ``run`` that other commands take too, also from the environment and from a file."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

from streaming.cli.boundary import errors_as_lines
from streaming.cli.console import (
    KAFKA_PANEL,
    REFUSED,
    AnyOption,
    AsJson,
    Brokers,
    ConfigurationFile,
    Prefix,
    err,
    fail,
    key_values,
)
from streaming.cli.help_output import option
from streaming.client.errors import CoordinatorError
from streaming.contract.waits import announcing_waits
from streaming.job.options import JobOptions, load_options

SPARK_PANEL = "Spark and metrics"

Master = Annotated[str | None, option(metavar="URL", text="Spark's master.", panel=SPARK_PANEL, default="local[*]")]

NOT_GIVEN = "not-given:0"
"""A required option of the job that no source gives, as an address too: the command leaves out what needs it."""


DEFAULTS = {"bootstrap-servers": NOT_GIVEN, "checkpoint": NOT_GIVEN}


@dataclass(frozen=True, kw_only=True)
class StoreOptions:
    """How a command that asks no brokers reaches a store, such as a bucket at s3a://."""

    config: ConfigurationFile = None
    settings: AnyOption = None
    as_json: AsJson = False

    def load(self) -> JobOptions:
        """The job's options. Raises BadOptions."""
        return load_options(key_values(self.settings, "--set"), os.environ, self.config, DEFAULTS)


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a command reaches the topics of a job, and its other options."""

    bootstrap_servers: Brokers = None
    topic_prefix: Prefix = None
    config: ConfigurationFile = None
    settings: AnyOption = None
    as_json: AsJson = False

    def load(self, checkpoint: str | None, **more: object) -> JobOptions:
        """The job's options, with those of the command: the checkpoint, and ``more``. Raises BadOptions."""
        flags: dict[str, object] = {
            "bootstrap_servers": self.bootstrap_servers,
            "topic_prefix": self.topic_prefix,
            "checkpoint": checkpoint,
            **more,
            **key_values(self.settings, "--set"),
        }
        return load_options(flags, os.environ, self.config, DEFAULTS)


@dataclass(frozen=True, kw_only=True)
class TimedOptions(RunOptions):
    """The same for a command that asks the brokers, with the time that they have to answer."""

    timeout: Annotated[
        int, option(metavar="SECONDS", text="How long to wait for the brokers.", panel=KAFKA_PANEL, min=1)
    ] = 10


@dataclass(frozen=True, kw_only=True)
class CheckpointOptions(RunOptions):
    """The same for a command about a checkpoint, which asks the brokers if they are given."""

    timeout: Annotated[
        int, option(metavar="SECONDS", text="How long to wait for a topic's next records.", panel=KAFKA_PANEL, min=1)
    ] = 30

    def limit(self, options: JobOptions) -> float | None:
        """The limit of requests to the brokers, in seconds; None without brokers."""
        return None if options.bootstrap_servers == NOT_GIVEN else float(self.timeout)

    @contextmanager
    def errors_as_lines(self) -> Iterator[None]:
        """End the command with one line and an exit code on an error that its user can mend, or of the brokers."""
        with errors_as_lines(), announcing_waits(err.line, self.bootstrap_servers):
            try:
                yield
            except CoordinatorError as error:
                fail(error.message, REFUSED)
