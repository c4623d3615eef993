"""The table of the benchmark (tests/bench/report.py): asked and measured side by side, and read back from JSON."""

import msgspec
import pytest

from tests.bench.figures import (
    BROKER,
    DEFAULTS,
    OURS,
    STOCK,
    Figures,
    Formation,
    Heartbeats,
    Idle,
    LogicFigure,
    Measurement,
    Memory,
    Population,
    Scale,
    Second,
    Stretch,
    Touched,
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
        seconds=[Second(1, milliseconds, milliseconds), Second(1, milliseconds, milliseconds)],
    )


def figures(milliseconds: float, *, failed: int = 0) -> Figures:
    formation = Formation(members=10, delay_ms=6000, above_delay_ms=[300.0, 100.0, 200.0], batch_ms=50.0)
    return Figures(
        steady=load(milliseconds, failed=failed),
        full=load(milliseconds, members=10),
        formations=[formation],
        way=[Stretch("waiting", 1.0)],
    )


def measured(milliseconds: float = 100.0, *, failed: int = 0, times: float = 8.0) -> Measurement:
    """A run in which this job took so long for each request, and was so many times as quick as pyspark's worker."""
    idle = Idle(groups=0, coordinator_cores=0.2, batch_ms=50.0, files_per_hour=1_000)
    population = Population(
        groups=100_000,
        formed_seconds=60.0,
        memory={"driver JVM": Memory(processes=1, rss_mib=1500.0, pss_mib=1024.0)},
        first_answer_seconds=21.0,
        idle=msgspec.structs.replace(idle, groups=100_000, batch_ms=65.0),
        idle_when_empty=idle,
    )
    ours = msgspec.structs.replace(figures(milliseconds, failed=failed), touched=Touched(1_000, [1.0 / times]))
    return Measurement(
        date="2026-01-01",
        commit="abc",
        machine={"cores": "2"},
        versions={"java": "17"},
        common={"trigger": "0 ms"},
        scale=Scale(),
        logic=[LogicFigure("a step", 70.0, "us", 60.0), LogicFigure("a commit", 4.0, "ms", 5.0)],
        generator=load(2.0),
        coordinators={
            OURS: ours,
            STOCK: Figures(touched=Touched(1_000, [1.0])),
            DEFAULTS: figures(1_000.0),
            BROKER: figures(2.0),
        },
        population=population,
    )


def verdicts(measurement: Measurement) -> dict[str, str]:
    return {row.what: row.verdict for row in next(sections(measurement)).rows}


def test_what_is_asked_is_reached_up_to_its_limit_and_not_beyond() -> None:
    p50 = "1,000 heartbeats/s over 1,000 groups, p50"
    assert verdicts(measured(100.0))[p50] == "reached"
    assert verdicts(measured(100.1))[p50] == "not reached"
    touched = "groups touched a second, against pyspark's worker"
    assert verdicts(measured(times=8.0))[touched] == "reached"
    assert verdicts(measured(times=7.9))[touched] == "not reached"


@pytest.mark.parametrize("wrong", [measured(0.0), measured(failed=1)], ids=["no answers", "a failure"])
def test_nothing_is_reached_without_answers_or_with_failures(wrong: Measurement) -> None:
    assert verdicts(wrong)["1,000 heartbeats/s over 1,000 groups, p50"] == "not reached"


def test_the_table_in_markdown_has_every_line_and_the_conditions() -> None:
    text = markdown(measured())
    assert "| 1,000 heartbeats/s over 1,000 groups, p99 | <= 250 ms | 100 ms |  |  | reached |" in text
    assert "| idle batch with 100,000 groups, against an empty one | <= 1.30x | 1.30x |  |  | reached |" in text
    assert "| kill -9 to first answer with 100,000 groups | <= 20.0 s | 21.0 s |  |  | not reached |" in text
    assert "| the same, in batches | <= 5.0 | 4.0 |  |  | reached |" in text
    assert "| request to response, p50 |  | 100 ms | 1,000 ms | 2.0 ms |  |" in text
    assert "| 10 members (delay 6000 ms) |  | 200 ms | 200 ms | 200 ms |  |" in text
    assert "| a step | <= 60 us | 70 us |  |  | not reached |" in text
    assert "trigger 0 ms" in text


def test_the_json_can_be_read_back() -> None:
    measurement = measured()
    assert msgspec.json.decode(msgspec.json.encode(measurement), type=Measurement) == measurement


def test_there_is_a_picture_of_every_kind(tmp_path_factory: pytest.TempPathFactory) -> None:
    stem = tmp_path_factory.mktemp("pictures") / "run"
    pictures = draw(measured(), stem)
    assert [picture.name for picture in pictures] == [
        "run-latency.png",
        "run-full-load.png",
        "run-formation.png",
        "run-way.png",
    ]
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)
