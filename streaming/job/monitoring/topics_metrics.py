"""The metrics of the topics: settings that the job cannot work with, and risky ones."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Gauge

from streaming.job.topics.inspection import TopicInspection


def serve_topics(registry: CollectorRegistry, found: Callable[[], TopicInspection]) -> None:
    """Add the gauges; ``found`` returns the newest inspection."""
    problems = Gauge(
        "group_coordinator_topic_problems",
        "Settings of the topics with which the job would not start, such as CreateTime; alert when not 0.",
        registry=registry,
    )
    problems.set_function(lambda: len(found().problems))
    risks = Gauge(
        "group_coordinator_topic_risks",
        "Settings of the topics that are risky, such as one replica.",
        registry=registry,
    )
    risks.set_function(lambda: len(found().risks))
