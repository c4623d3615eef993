"""Metrics: scraped from running jobs, and counted from progress reports made by hand."""

import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from importlib.metadata import version

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from coordinator_logic.records import GroupDirectoryEntry
from streaming.job.measures import RejectCount, RequestCount, Totals
from streaming.job.monitoring.backlog import SourceProgress
from streaming.job.monitoring.metrics import Metrics, Observed, Progress
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.kafka_io import append, reading
from tests.support.parameters.long_tests import mostly_long
from tests.support.request_events import commit, correlation_id, dumped, envelope
from tests.support.waiting import LIMIT_SECONDS, wait_until

Samples = dict[tuple[str, tuple[str, ...]], float]


def scraped(port: int) -> Samples:
    """Return the value of every sample, by its name and the values of its labels."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=LIMIT_SECONDS) as page:
        return samples(text_string_to_metric_families(page.read().decode()))


def samples(families: Iterable[Metric]) -> Samples:
    return {
        (sample.name, tuple(sample.labels.values())): sample.value for family in families for sample in family.samples
    }


def port_of(coordinator: CoordinatorProcess) -> int:
    line = next(line for line in coordinator.output if "metrics at port" in line)
    return int(line.split("metrics at port ")[1].split('"')[0])


def test_a_running_job_counts_requests_rejects_and_batches(coordinator: CoordinatorProcess) -> None:
    servers, topics, group_id = coordinator.bootstrap_servers, coordinator.topics, correlation_id()
    port = port_of(coordinator)
    before = scraped(port)

    def increase(name: str, *labels: str) -> float:
        key = (f"group_coordinator_{name}", labels)
        return scraped(port).get(key, 0) - before.get(key, 0)

    # Batches are counted in order, shortly after they end: requests of other tests may not be counted yet.
    append(servers, topics.requests, (group_id.encode(), dumped(envelope("Nope", 1, {}))))
    wait_until(
        lambda: increase("requests_total", "unknown", "INVALID_REQUEST") == 1, "all earlier requests are counted"
    )
    before = scraped(port)
    fenced = commit(group_id, 2)
    fenced["body"] |= {"generationIdOrMemberEpoch": 3, "memberId": "nobody"}
    requests = [commit(group_id, 1), commit(group_id, 0), fenced, envelope("Nope", 1, {})]
    append(servers, topics.requests, *[(group_id.encode(), dumped(request)) for request in requests])
    with reading(servers, topics.responses) as responses:
        last = requests[-1]["correlationId"].encode()
        responses.first(lambda record: record.key == last, "the answers")
    wait_until(lambda: increase("requests_total", "unknown", "INVALID_REQUEST") == 1, "the last request is counted")
    assert increase("requests_total", "OffsetCommit", "NONE") == 2
    assert increase("offsets_moved_back_total", "commit") == 1
    assert increase("rejects_total", "api") == 1
    assert increase("request_latency_seconds_count", "OffsetCommit") == 3
    assert increase("batch_phase_seconds_count", "addBatch") >= 1
    assert scraped(port)["group_coordinator_backlog_requests", ()] == 0


@pytest.mark.parametrize("worker", mostly_long(["arrow", "stock"], ["arrow"]))
def test_many_requests_in_several_tasks_are_counted_exactly(
    new_coordinator: Callable[..., CoordinatorProcess], worker: str
) -> None:
    coordinator = new_coordinator({"python-worker": worker, "state-partitions": 2, "metrics-port": 0})
    coordinator.start()
    servers, topics, port = coordinator.bootstrap_servers, coordinator.topics, port_of(coordinator)
    group_ids = [f"group-{number}" for number in range(50)]
    commits = [(group_id.encode(), dumped(commit(group_id, 1))) for group_id in group_ids for _ in range(40)]
    append(servers, topics.requests, *commits, *[(b"group-0", b"not JSON")] * 3)

    def total(name: str, *labels: str) -> float:
        return scraped(port).get((f"group_coordinator_{name}", labels), 0)

    wait_until(lambda: total("requests_total", "OffsetCommit", "NONE") >= 2_000, "all commits are counted")
    wait_until(lambda: total("rejects_total", "json") >= 3, "all rejects are counted")
    assert total("requests_total", "OffsetCommit", "NONE") == 2_000
    assert total("request_latency_seconds_count", "OffsetCommit") == 2_000
    assert total("offsets_committed_total") == 2_000
    assert total("rejects_total", "json") == 3


def test_the_gauges_follow_the_directory(coordinator: CoordinatorProcess) -> None:
    servers, topics, group_id = coordinator.bootstrap_servers, coordinator.topics, correlation_id()
    port = port_of(coordinator)
    append(servers, topics.requests, (group_id.encode(), dumped(commit(group_id, 1))))
    with reading(servers, topics.directory) as directory:
        line = directory.first(lambda record: record.key == group_id.encode(), "the group's line")
        assert line.value["groupState"] == "Empty"

        def gauges_equal_directory() -> bool:
            # The groups of other tests change meanwhile, so no number is known in advance.
            newest = {record.key: record.value for record in directory.poll()}
            groups = [group for group in newest.values() if group is not None]
            gauged = scraped(port)
            gauges = {labels: count for (name, labels), count in gauged.items() if name == "group_coordinator_groups"}
            return (
                Counter(gauges) == Counter((group["groupState"],) for group in groups)
                and gauged["group_coordinator_members", ()] == sum(group["members"] for group in groups)
                and gauged["group_coordinator_offsets", ()] == sum(group["offsets"] for group in groups)
            )

        wait_until(gauges_equal_directory, "the gauges equal the directory")


def test_the_build_is_shown_and_no_series_tells_when_it_was_created() -> None:
    samples = [sample for family in Metrics().registry.collect() for sample in family.samples]
    (build,) = [sample.labels for sample in samples if sample.name == "group_coordinator_build_info"]
    assert build == {"version": version("spark-group-coordinator"), "pyspark": version("pyspark")}
    assert [sample.name for sample in samples if sample.name.endswith("_created")] == []


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"group_coordinator_{name}", labels)


def a_batch(batch_id: int) -> Progress:
    return Progress(
        batch_id,
        {"walCommit": 10, "addBatch": 90, "latestOffset": 1_000, "triggerExecution": 1_100},
        [SourceProgress({"requests": {"0": 9, "1": 5}}, {"requests": {"0": 7, "1": 5}})],
        num_input_rows=22,
        observed_metrics={
            "measures": Observed(
                [
                    Totals([RequestCount("Heartbeat", 27, 50, 1)], offsets_committed=15).encoded(),
                    Totals(
                        requests=[RequestCount("Heartbeat", 27, 50, 2)],
                        rejects=[RejectCount("json", 4)],
                        rebalances_completed=2,
                        offsets_committed=5,
                        offsets_expired=3,
                        offsets_moved_back={"reset": 2},
                    ).encoded(),
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
    assert value(metrics, "offsets_moved_back_total", cause="reset") == 4
    assert value(metrics, "offsets_moved_back_total", cause="commit") == 0
    assert value(metrics, "batch_phase_seconds_sum", phase="addBatch") == pytest.approx(0.18)
    assert value(metrics, "backlog_requests") == 2
    assert value(metrics, "backlog_seconds") == pytest.approx(2 / 20)


def test_a_batch_has_its_time_after_its_trigger() -> None:
    planned_at = datetime(2026, 11, 23, 12, 0, 0, 250_000, tzinfo=UTC)
    batch = Progress(3, {"latestOffset": 7, "addBatch": 90}, timestamp=planned_at)
    assert batch.earliest_time == 1_795_435_200_250


def test_the_time_of_a_batch_that_runs_again_is_not_known() -> None:
    batch = Progress(3, {"addBatch": 90}, timestamp=datetime(2026, 11, 23, tzinfo=UTC))
    assert batch.earliest_time is None


def test_latency_is_the_wait_for_the_batch_plus_its_duration() -> None:
    metrics = Metrics()
    metrics.count_batch(a_batch(0))
    # 50 ms until the batch's time, then 10 + 90 ms until the end of its sink.
    assert value(metrics, "request_latency_seconds_sum", api="Heartbeat") == pytest.approx(3 * 0.15)


def test_gauges_sum_the_entries_of_the_directory() -> None:
    metrics = Metrics()
    entries = [
        GroupDirectoryEntry("a", "Stable", "classic", "consumer", 3, 2, 60),
        GroupDirectoryEntry("b", "Stable", "classic", "consumer", 1, 5, 6),
        GroupDirectoryEntry("c", "Empty", "classic", "", 0, 0),
    ]
    metrics.groups.entries = lambda: entries
    assert value(metrics, "groups", state="Stable") == 2
    assert value(metrics, "groups", state="PreparingRebalance") == 0
    assert value(metrics, "members") == 7
    assert value(metrics, "offsets") == 66
    entries.clear()
    assert value(metrics, "groups", state="Stable") == 0


def test_invented_states_share_one_series() -> None:
    metrics = Metrics()
    states = ("InventedA", "InventedB", "InventedC", "Quarantined")
    metrics.groups.entries = lambda: [GroupDirectoryEntry(state, state, "classic", "", 0, 0) for state in states]
    labels = {labels[0] for name, labels in samples(metrics.registry.collect()) if name == "group_coordinator_groups"}
    states_of_types = {"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"}
    assert labels == {"Empty", "Stable", "Quarantined", "other"} | states_of_types
    assert value(metrics, "groups", state="other") == 3
    assert value(metrics, "groups", state="Quarantined") == 1
