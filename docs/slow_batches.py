"""The table of the causes of slow batches, in docs/operations/reference.md."""

from collections.abc import Mapping

from streaming.job.monitoring.slow_batches.causes import CAUSES, Cause

MEASURED: Mapping[Cause, str] = {
    "start": "fewer than 20 batches before it, with which to compare it",
    "usual": "less than one and a half times the median of the 60 batches before it",
    "requests": "the requests beyond those of other batches, each with the time that a request usually adds",
    "garbage-collection": "Java's collectors",
    "compilation": "Java's compilers, while the batch waits for a processor",
    "other-processes": "CPU time of processes that are not the job's, while the batch waits for a processor",
    "processors": "the rest of the time in which the batch's threads were ready and did not run (`schedstat`)",
    "disk": "Linux's pressure stall information",
    "memory": "Linux's pressure stall information",
    "cpu-quota": "`throttled_usec` of the job's cgroup (version 2)",
    "host": "stolen CPU time, and a short Python loop that takes longer than at its fastest",
    "brokers": "Spark's phase `latestOffset`",
    "checkpoint": "Spark's phases `walCommit` and `commitOffsets`",
    "state-store": "the operator's `commitTimeMs`",
    "planning": "Spark's phases `queryPlanning` and `getBatch`",
    "unexplained": "",
}

HELPS: Mapping[Cause, str] = {
    "start": "wait half a minute",
    "usual": "more cores, a faster checkpoint, or fewer requests",
    "requests": "nothing, if it follows another slow batch or a burst; else more cores",
    "garbage-collection": "a larger `driver-memory`",
    "compilation": "wait: it ends some minutes after the start",
    "other-processes": "a host with less beside the job",
    "processors": "more cores",
    "disk": "another disk for the checkpoint or the broker",
    "memory": "more memory: the host swaps or reads programs again",
    "cpu-quota": "a larger CPU limit of the container, or none",
    "host": "another host",
    "brokers": "look at the brokers and the network",
    "checkpoint": "another disk or object store for the checkpoint",
    "state-store": "another disk or object store for the checkpoint",
    "planning": "report it, if it happens often",
    "unexplained": "report it, if it happens often",
}


def markdown() -> str:
    """A row for each cause."""
    head = "| cause | in the line | measured by | what helps |\n|---|---|---|---|\n"
    return head + "".join(
        f"| `{cause}` | {words} | {MEASURED[cause]} | {HELPS[cause]} |\n" for cause, words in CAUSES.items()
    )
