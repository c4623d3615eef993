"""The metrics of the topics: settings that the job cannot work with, risky ones, and the reader that finds them."""

from prometheus_client import Gauge

from streaming.job.monitoring.metrics import Metrics
from streaming.job.topics.watch import CoordinatorTopicsWatch

TOPICS = "topics"
"""The name of the reader in the metrics."""


def serve_topics(metrics: Metrics, watch: CoordinatorTopicsWatch) -> None:
    """Add the gauges of the newest inspection, and the watch as a reader: the job is not live without it.

    The watch also finds requests that no batch has read.
    """
    metrics.add_reader(TOPICS, watch.is_alive)
    watch.on_ends = metrics.note_ends
    problems = Gauge(
        "group_coordinator_topic_problems",
        "Settings of the topics with which the job would not start, such as CreateTime; alert when not 0.",
        registry=metrics.registry,
    )
    problems.set_function(lambda: len(watch.found.problems))
    risks = Gauge(
        "group_coordinator_topic_risks",
        "Settings of the topics that are risky, such as one replica.",
        registry=metrics.registry,
    )
    risks.set_function(lambda: len(watch.found.risks))
