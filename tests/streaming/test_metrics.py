"""Metrics, as Prometheus would fetch them from a running job, and counted by hand."""

import urllib.request
from collections import Counter

import pytest
from prometheus_client.parser import text_string_to_metric_families

from coordinator_logic.records import GroupDirectoryEntry
from streaming import measures
from streaming.errors import CannotRun
from streaming.metrics import CountedMeasure, Metrics, Observed, Progress, SourceProgress, served
from tests.streaming.client_support import wait_until
from tests.streaming.coordinator_process import CoordinatorProcess
from tests.streaming.kafka_io import append, commit, correlation_id, dumped, envelope, reading

Samples = dict[tuple[str, tuple[str, ...]], float]


def scraped(port: int) -> Samples:
    """The value of every sample, by its name and the values of its labels."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
        families = text_string_to_metric_families(page.read().decode())
        return {
            (sample.name, tuple(sample.labels.values())): sample.value
            for family in families
            for sample in family.samples
        }


def port_of(coordinator: CoordinatorProcess) -> int:
    line = next(line for line in coordinator.said if "metrics at port" in line)
    return int(line.split("metrics at port ")[1].split('"')[0])


def test_a_running_job_counts_what_it_does(coordinator: CoordinatorProcess) -> None:
    servers, topics, group_id = coordinator.bootstrap_servers, coordinator.topics, correlation_id()
    port = port_of(coordinator)
    before = scraped(port)

    def risen(name: str, *labels: str) -> float:
        key = (f"group_coordinator_{name}", labels)
        return scraped(port).get(key, 0) - before.get(key, 0)

    # What other tests have asked for may not be counted yet: batches are, in their order, a moment after they ended.
    append(servers, topics.requests, (group_id.encode(), dumped(envelope("Nope", 1, {}))))
    wait_until(lambda: risen("requests_total", "unknown", "INVALID_REQUEST") == 1, "all that came before is counted")
    before = scraped(port)
    fenced = commit(group_id, 2)
    fenced["body"] |= {"generationIdOrMemberEpoch": 3, "memberId": "nobody"}
    requests = [commit(group_id, 1), commit(group_id, 1), fenced, envelope("Nope", 1, {})]
    append(servers, topics.requests, *[(group_id.encode(), dumped(request)) for request in requests])
    with reading(servers, topics.responses) as responses:
        last = requests[-1]["correlationId"].encode()
        responses.first(lambda record: record.key == last, "the answers")
    wait_until(lambda: risen("requests_total", "unknown", "INVALID_REQUEST") == 1, "the last request is counted")
    assert risen("requests_total", "OffsetCommit", "NONE") == 2
    assert risen("rejects_total", "api") == 1
    assert risen("request_latency_seconds_count", "OffsetCommit") == 3
    assert risen("batch_phase_seconds_count", "addBatch") >= 1
    assert scraped(port)["group_coordinator_backlog_requests", ()] == 0


def test_a_running_job_shows_the_groups_of_its_directory(coordinator: CoordinatorProcess) -> None:
    servers, topics, group_id = coordinator.bootstrap_servers, coordinator.topics, correlation_id()
    port = port_of(coordinator)
    append(servers, topics.requests, (group_id.encode(), dumped(commit(group_id, 1))))
    with reading(servers, topics.directory) as directory:
        line = directory.first(lambda record: record.key == group_id.encode(), "the group's line")
        assert line.value["groupState"] == "Empty"

        def shown_as_in_directory() -> bool:
            # Other tests' groups change meanwhile, by timers of their own: no number is certain, but what is said now.
            newest = {record.key: record.value for record in directory.poll()}
            groups = [group for group in newest.values() if group is not None]
            samples = scraped(port)
            shown = {labels: count for (name, labels), count in samples.items() if name == "group_coordinator_groups"}
            return (
                Counter(shown) == Counter((group["groupState"],) for group in groups)
                and samples["group_coordinator_members", ()] == sum(group["members"] for group in groups)
                and samples["group_coordinator_offsets", ()] == sum(group["offsets"] for group in groups)
            )

        wait_until(shown_as_in_directory, "the directory's groups are shown")


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"group_coordinator_{name}", labels)


def a_batch(batch_id: int) -> Progress:
    return Progress(
        batch_id,
        {"walCommit": 10, "addBatch": 90, "latestOffset": 1_000, "triggerExecution": 1_100},
        [SourceProgress({"requests": {"0": 9, "1": 5}}, {"requests": {"0": 7, "1": 5}})],
        {
            "measures": Observed(
                [
                    CountedMeasure(None, 17),
                    CountedMeasure(measures.answered("Heartbeat", 27, 50), 3),
                    CountedMeasure(measures.REBALANCE_COMPLETED, 2),
                    CountedMeasure(measures.rejected("json"), 4),
                    CountedMeasure("offsets|committed|10", 2),
                    CountedMeasure("offsets|expired|3", 1),
                ]
            )
        },
    )


def test_a_batch_is_counted_once() -> None:
    metrics = Metrics()
    for batch_id in (4, 4, 3, 5):
        metrics.count_batch(a_batch(batch_id))
    assert value(metrics, "requests_total", api="Heartbeat", error="REBALANCE_IN_PROGRESS") == 6
    assert value(metrics, "rebalances_completed_total") == 4
    assert value(metrics, "rejects_total", cause="json") == 8
    assert value(metrics, "offsets_committed_total") == 40
    assert value(metrics, "offsets_expired_total") == 6
    assert value(metrics, "offsets_deleted_total") == 0
    assert value(metrics, "batch_phase_seconds_sum", phase="addBatch") == pytest.approx(0.18)
    assert value(metrics, "backlog_requests") == 2


def test_latency_is_the_wait_for_the_batch_and_the_work_of_the_batch() -> None:
    metrics = Metrics()
    metrics.count_batch(a_batch(0))
    # 50 ms until the batch's time, then 10 + 90 ms until its sink was done.
    assert value(metrics, "request_latency_seconds_sum", api="Heartbeat") == pytest.approx(3 * 0.15)


def test_groups_and_members_are_those_of_the_directory() -> None:
    metrics = Metrics()
    metrics.show_groups(
        [
            GroupDirectoryEntry("a", "Stable", "classic", "consumer", 3, 2, 60),
            GroupDirectoryEntry("b", "Stable", "classic", "consumer", 1, 5, 6),
            GroupDirectoryEntry("c", "Empty", "classic", "", 0, 0),
        ]
    )
    assert value(metrics, "groups", state="Stable") == 2
    assert value(metrics, "groups", state="PreparingRebalance") == 0
    assert value(metrics, "members") == 7
    assert value(metrics, "offsets") == 66
    metrics.show_groups([])
    assert value(metrics, "groups", state="Stable") == 0


def test_a_port_that_is_taken_is_named() -> None:
    with served(Metrics(), 0) as port, pytest.raises(CannotRun, match=f"metrics-port {port} cannot be used"):  # noqa: SIM117
        with served(Metrics(), port):
            pass
