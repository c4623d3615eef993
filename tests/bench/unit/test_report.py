"""The tables of the benchmark: goals, verdicts and cells; the JSON and the plots."""

import msgspec
import pytest

from tests.bench.figures import (
    BROKER,
    DEFAULT,
    FIXED,
    LATENCY,
    QUICK,
    SMALL_COMMITS,
    SMALL_HEARTBEATS,
    SPARK_DEFAULTS,
    STEADY_COMMITS,
    STOCK_WORKER,
    Figures,
    FirstMinute,
    Formation,
    Heartbeats,
    Idle,
    LogicFigure,
    Measurement,
    Memory,
    Population,
    Scale,
    Stage,
    Touched,
    Window,
)
from tests.bench.latency import summary
from tests.bench.plots import draw
from tests.bench.report import markdown, sections


def load(milliseconds: float, *, failed: int = 0, groups: int = 1_000, members: int = 1) -> Heartbeats:
    return Heartbeats(
        rate=1_000,
        groups=groups,
        members=members,
        latency=summary([milliseconds / 1000]),
        sent_late=summary([0.001]),
        failed=failed,
        coordinator_cores=0.5,
        generator_cores=0.01,
        other_cores=0.1,
        seconds=[Window(0, 1, milliseconds, milliseconds), Window(1, 1, milliseconds, milliseconds)],
    )


def figures(milliseconds: float, *, failed: int = 0) -> Figures:
    formation = Formation(members=10, delay_ms=6000, above_delay_ms=[300.0, 100.0, 200.0], batch_ms=50.0)
    return Figures(
        steady=load(milliseconds, failed=failed),
        full=load(milliseconds, members=10),
        paced={what: load(milliseconds, failed=failed) for what in (SMALL_COMMITS, SMALL_HEARTBEATS, STEADY_COMMITS)},
        formations=[formation],
        path=[Stage("wait", 1.0)],
    )


def measured(
    milliseconds: float = 100.0, *, failed: int = 0, ratio: float = 8.0, scale: Scale | None = None
) -> Measurement:
    """A run with these latencies and failures, and this ratio of groups touched to those of pyspark's worker."""
    idle = Idle(groups=0, seconds=60.0, coordinator_cores=0.02, batches=0, files=3, batch_ms=50.0)
    population = Population(
        groups=100_000,
        formed_seconds=60.0,
        memory={"driver JVM": Memory(processes=1, rss_mib=1500.0, pss_mib=1024.0)},
        first_answer_seconds=21.0,
        idle=msgspec.structs.replace(idle, groups=100_000, batch_ms=65.0),
        idle_when_empty=idle,
    )
    latency = msgspec.structs.replace(figures(milliseconds, failed=failed), touched=Touched(1_000, [1.0 / ratio]))
    begun = FirstMinute(rate=500, groups=100, failed=0, windows=[Window(0, 9, 5_700, 9_000), Window(15, 9, 250, 700)])
    return Measurement(
        date="2026-01-01",
        commit="abc",
        machine={"cores": "2"},
        versions={"java": "17"},
        common={"state partitions": "1"},
        scale=scale or Scale(),
        logic=[LogicFigure("a step", 70.0, "us", 60.0), LogicFigure("a commit", 4.0, "ms", 5.0)],
        generator=load(2.0),
        coordinators={
            DEFAULT: msgspec.structs.replace(figures(300.0), first_minute=begun),
            FIXED: msgspec.structs.replace(figures(400.0), steady=None, full=None),
            LATENCY: latency,
            STOCK_WORKER: Figures(touched=Touched(1_000, [1.0])),
            SPARK_DEFAULTS: figures(1_000.0),
            BROKER: figures(2.0),
        },
        population=population,
    )


def verdicts(measurement: Measurement) -> dict[str, str]:
    return {row.name: row.verdict for row in next(sections(measurement)).rows}


def test_a_goal_is_met_up_to_its_limit_and_not_beyond() -> None:
    p50 = "1,000 heartbeats/s over 1,000 groups, p50"
    assert verdicts(measured(100.0))[p50] == "met"
    assert verdicts(measured(100.1))[p50] == "missed"
    touched = "groups touched per second, relative to pyspark's worker"
    assert verdicts(measured(ratio=8.0))[touched] == "met"
    assert verdicts(measured(ratio=7.9))[touched] == "missed"


def test_no_goal_is_met_without_responses_or_with_failures() -> None:
    assert verdicts(measured(0.0))["1,000 heartbeats/s over 1,000 groups, p50"] == "missed"
    assert verdicts(measured(failed=1))["1,000 heartbeats/s over 1,000 groups, p50"] == "missed"


def test_every_figure_is_in_the_column_of_its_system_and_profile() -> None:
    text = markdown(measured())
    columns = "this job, default | this job, fixed interval | this job, latency | Spark's defaults, latency"
    headings = f"|  | goal | {columns} | Kafka's broker |  |"
    assert headings in text
    assert "| 1,000 heartbeats/s over 1,000 groups, p99 | <= 250 ms |  |  | 100 ms |  |  | met |" in text
    ratio = "batch that finds nothing to do with 100,000 groups, relative to no groups"
    assert f"| {ratio} | <= 1.30x | 1.30x |  |  |  |  | met |" in text
    assert "| CPU when idle, no groups | <= 0.030 cores | 0.020 cores |  |  |  |  | met |" in text
    assert "| batches in 60 idle s, no groups | 0 | 0 |  |  |  |  | met |" in text
    assert "| files written in 60 idle s, with 100,000 groups | 0 | 3 |  |  |  |  | missed |" in text
    assert "| kill -9 to first answer with 100,000 groups | <= 20.0 s | 21.0 s |  |  |  |  | missed |" in text
    assert "| the same in batches | <= 5.0 |  |  | 4.0 |  |  | met |" in text
    assert "| request to response, p50 |  | 300 ms |  | 100 ms | 1,000 ms | 2.0 ms |  |" in text
    assert "| 10 members (delay 6000 ms) |  | 200 ms | 200 ms | 200 ms | 200 ms | 200 ms |  |" in text
    assert "| 20 commits/s over 100 groups, p50 | <= 100 ms | 300 ms |  |  |  |  | missed |" in text
    cpu = "CPU with 20 heartbeats/s of 200 members, relative to a fixed interval"
    assert f"| {cpu} | <= 1.00x | 1.00x |  |  |  |  | met |" in text
    assert "| p50 of the first 15 s, relative to later | <= 2.0x | 22.8x |  |  |  |  | missed |" in text
    assert "| request to response, p99 |  | 300 ms | 400 ms |  |  |  |  |" in text
    assert "| a step | <= 60 us | 70.0 us |  |  |  |  | missed |" in text
    assert "state partitions 1" in text


def test_the_first_minute_is_shown_in_windows() -> None:
    text = markdown(measured())
    assert "The first minute of a new job, default profile: 500 commits/s over 100 groups, 0 failed" in text
    assert "| 0 to 15 | 5,700 ms | 9,000 ms |\n| 15 to 30 | 250 ms | 700 ms |" in text


def test_a_run_without_warm_up_says_so() -> None:
    assert "did not warm up" in markdown(measured(scale=QUICK))
    assert "did not warm up" not in markdown(measured())


def test_the_json_can_be_read_back() -> None:
    measurement = measured()
    assert msgspec.json.decode(msgspec.json.encode(measurement), type=Measurement) == measurement


def test_every_plot_is_written(tmp_path_factory: pytest.TempPathFactory) -> None:
    stem = tmp_path_factory.mktemp("plots") / "run"
    plots = draw(measured(), stem)
    assert [plot.name for plot in plots] == [
        "run-latency.png",
        "run-full-load.png",
        "run-formation.png",
        "run-first-minute.png",
        "run-request-path.png",
    ]
    assert all(plot.read_bytes().startswith(b"\x89PNG") for plot in plots)
