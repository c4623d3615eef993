"""A job in this process, whose query starts again after each failure, as the principal `job` of a secured cluster."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from pyspark.sql.streaming.query import StreamingQuery

from streaming.job.lifecycle.activation import become_active
from streaming.job.lifecycle.job_session import start_session
from streaming.job.lifecycle.query_start import start_query
from streaming.job.lifecycle.run import failure_line
from streaming.job.options import JobOptions, load_options
from tests.gateway.security.roles.cluster import SecuredCluster
from tests.support.coordinator_process import QUICK
from tests.support.kafka_io import append
from tests.support.request_events import commit, dumped
from tests.support.topics import unique
from tests.support.waiting import wait_until


class SecuredJob:
    """An active job; :attr:`query` runs whenever no test has made it fail."""

    def __init__(self, cluster: SecuredCluster, folder: Path, stack: ExitStack) -> None:
        self.cluster = cluster
        own = {"bootstrap-servers": cluster.address, "checkpoint": str(folder / "checkpoint")}
        self.options: JobOptions = load_options({**QUICK, **cluster.job_options(), **own}, {})
        self.session = start_session(self.options, stack, lambda _line: None)
        become_active(self.session, lambda _line: None)
        self._stack = stack.enter_context(ExitStack())
        self.query = self._start()

    def _start(self) -> StreamingQuery:
        partitions = self.session.watch.found.partition_counts(self.options.topics)
        return start_query(self.session, partitions, self._stack, lambda _line: None)

    def refusal(self, append: Callable[[], object]) -> str:
        """The line with which the job ends after ``append``, without a right."""
        append()
        wait_until(
            lambda: not self.query.isActive, "the query's failure", describe=lambda: str(self.query.lastProgress)
        )
        failure = self.query.exception()
        assert failure is not None
        return failure_line(failure, self.session)

    def start_again(self) -> None:
        """Start the query that has failed, and wait until it has read everything."""
        self._stack.close()
        self.query = self._start()
        wait_until(
            lambda: bool(self.query.recentProgress), "the first batch", describe=lambda: str(self.query.exception())
        )
        assert self.query.isActive

    def append_commit(self) -> None:
        """Append a request that changes a group."""
        group = unique("job")
        append(self.cluster.open_address, self.cluster.names.requests, (group.encode(), dumped(commit(group, 1))))

    def append_garbage(self) -> None:
        """Append what is no request."""
        append(self.cluster.open_address, self.cluster.names.requests, (b"group", b"garbage"))
