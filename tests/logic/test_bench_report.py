"""The table of the benchmark (tests/bench/report.py): asked and measured side by side, and read back from JSON."""

from typing import Any

import msgspec
import pytest

from tests.bench.figures import Figures, Formation, Idle, Load, LogicFigure, Measurement, Memory, Scale
from tests.bench.latency import summary
from tests.bench.report import markdown, sections

SCALE = Scale(group_sizes=(1,), rates=(10,))


def figures(p50_seconds: float) -> Figures:
    latency = summary([p50_seconds])
    load = Load(
        rate=10,
        latency=latency,
        broker_round_trip=latency,
        sent_late=latency,
        failed=0,
        generator_cores=0.01,
        coordinator_cores=0.5,
        other_cores=0.1,
    )
    formation = Formation(members=1, delay_ms=3000, above_delay_ms=[300.0, 100.0, 200.0])
    memory = {"driver JVM": Memory(processes=1, rss_mib=500.0, pss_mib=400.0)}
    return Figures(start_seconds=9.0, formations=[formation], loads=[load], idle=Idle(0.1), memory=memory)


def measured(shipped: float, defaults: float) -> Measurement:
    """A run with these p50s, in seconds."""
    facts = {"machine": {"cores": "2"}, "versions": {"java": "17"}, "common": {"trigger": "0 ms"}}
    both = {"shipped": figures(shipped), "defaults": figures(defaults)}
    logic = [LogicFigure("a step", 70.0, "us", 60.0), LogicFigure("a commit", 4.0, "ms", 5.0)]
    return msgspec.convert(
        {"date": "2026-01-01", "commit": "abc", "scale": SCALE, "logic": logic, **facts, **both}, Measurement
    )


def verdict(measurement: Measurement) -> str:
    return next(sections(measurement)).rows[0].verdict


def test_five_times_quicker_is_reached_and_anything_less_is_not() -> None:
    assert verdict(measured(shipped=0.2, defaults=1.0)) == "reached"
    assert verdict(measured(shipped=0.2, defaults=0.9)) == "not reached"


@pytest.mark.parametrize("wrong", [{"latency": summary([])}, {"failed": 1}], ids=["no answers", "a failure"])
def test_nothing_is_reached_without_answers_or_with_failures(wrong: dict[str, Any]) -> None:
    load = msgspec.structs.replace(figures(0.1).loads[0], **wrong)
    shipped = msgspec.structs.replace(figures(0.1), loads=[load])
    assert verdict(msgspec.structs.replace(measured(0.1, 1.0), shipped=shipped)) == "not reached"


def test_the_table_in_markdown_has_every_line_and_the_conditions() -> None:
    text = markdown(measured(shipped=0.2, defaults=1.0))
    assert "| request to response, p50 | 200 ms | 1000 ms | 5.0x | >= 5x | reached |" in text
    assert "| 1 member (delay 3000 ms) | 200 ms | 200 ms | 1.0x |  |  |" in text
    assert "| a step | 70 us |  |  | <= 60 us | not reached |" in text
    assert "| a commit | 4 ms |  |  | <= 5 ms | reached |" in text
    assert "trigger 0 ms" in text


def test_the_json_can_be_read_back() -> None:
    measurement = measured(shipped=0.2, defaults=1.0)
    assert msgspec.json.decode(msgspec.json.encode(measurement), type=Measurement) == measurement
