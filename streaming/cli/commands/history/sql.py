"""``group-coordinator sql``: query the coordinator's groups, journal and requests as tables."""

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
import typer

from streaming.cli.boundary import errors_as_lines
from streaming.cli.connection import with_options
from streaming.cli.console import (
    REFUSED,
    USAGE,
    PointInTime,
    err,
    fail,
    out,
    progress,
    require,
    time_given,
)
from streaming.cli.help_output import option
from streaming.cli.run_options import NOT_GIVEN, TimedOptions
from streaming.contract.errors import CannotRun
from streaming.contract.output.columns import Column
from streaming.contract.output.plain import print_encoded_json
from streaming.contract.waits import KAFKA, announcing_waits, waiting_for
from streaming.job.options import JobOptions


def completed_query(incomplete: str) -> list[str]:
    """The query with each table that may follow its FROM or JOIN, for completion in a shell."""
    begin = incomplete.rpartition(" ")[0]
    if not begin.lower().endswith((" from", " join")):
        return []
    try:
        from streaming.explain.tables import TABLES
    except ImportError:
        return []
    return [f"{begin} {name}" for name in TABLES]


@with_options("given", TimedOptions)
def sql(
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="A query in Spark's SQL.", autocompletion=completed_query)
    ],
    given: TimedOptions,
    checkpoint: Annotated[
        str | None, option(metavar="FOLDER", text="The job's checkpoint; the job may run.", default="none")
    ] = None,
    at: PointInTime = None,
) -> None:
    """Query the tables groups, members, assignments, targets, offsets, rebalances, journal and requests with Spark.

    Groups come from the checkpoint and the journal after it, or from either alone. Rebalances, journal and requests
    need brokers. Takes the options of run, also from the environment and from a file. Changes nothing.
    """
    require("sql", "job")
    from pyspark.errors import AnalysisException, ParseException, PySparkException

    from streaming.explain.tables.sessions import session_of
    from streaming.explain.tables.tables import Sources

    time = None if at is None else time_given(at, "--at")
    with errors_as_lines():
        options = given.load(checkpoint)
        has_brokers, has_checkpoint = options.bootstrap_servers != NOT_GIVEN, options.checkpoint != NOT_GIVEN
        if not (has_brokers or has_checkpoint):
            fail("sql needs brokers (-b), or a checkpoint, or both", USAGE)
        if has_checkpoint:
            _require_checkpoint(options.checkpoint)
        if has_brokers:
            _require_journal(options, given.timeout)
        sources = Sources(
            options.java_client_config if has_brokers else {},
            options.checkpoint if has_checkpoint else None,
            options.topics,
        )
        with session_of(options, sources, progress(given.as_json), time) as tables:
            try:
                result = tables.sql(query).toArrow()
            except PySparkException as error:
                # Here, because the message needs the session. After its first line, it shows the query again.
                is_of_query = isinstance(error, (ParseException, AnalysisException))
                fail(str(error).strip().splitlines()[0], USAGE if is_of_query else REFUSED)
    if given.as_json:
        _print_json_lines(result)
    else:
        rows = [["-" if value is None else str(value) for value in row.values()] for row in _rows(result)]
        out.table([Column(name, rank=place) for place, name in enumerate(result.column_names)], rows)


def _require_checkpoint(checkpoint: str) -> None:
    """Check that a local checkpoint is there, before Spark starts. Raises CannotRun."""
    from streaming.job.checkpoints.local_folder import local_path

    folder = local_path(checkpoint)
    if folder is not None and not folder.is_dir():
        raise CannotRun(f"there is no checkpoint {checkpoint}")


def _require_journal(options: JobOptions, timeout: int) -> None:
    """Check that the brokers answer and have the journal, before Spark starts, which would ask for minutes.

    Raises CannotRun.
    """
    from streaming.job.topics.creation import admin_client

    with (
        announcing_waits(err.line, options.bootstrap_servers),
        admin_client(options.librdkafka_config) as admin,
        waiting_for(KAFKA, timeout),
    ):
        topics = admin.list_topics(timeout=timeout).topics
    if options.topics.journal not in topics:
        raise CannotRun(
            f"topic {options.topics.journal!r} does not exist: "
            "is the coordinator running, and is the topic prefix correct?"
        )


def _print_json_lines(result: Any) -> None:
    encoder = msgspec.json.Encoder(decimal_format="number")
    for row in _rows(result):
        print_encoded_json(encoder.encode(row))


def _rows(result: Any) -> Iterator[dict[str, Any]]:
    for batch in result.to_batches():
        yield from batch.to_pylist()
