"""The report: JSON that says everything, and a page that needs no other file."""

import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from streaming.drills.recording import Episode, Notice, ProbeRequest, Step
from streaming.drills.reports.figures import figures_of, noticed_in
from streaming.drills.reports.page import page
from streaming.drills.reports.report import DrillReport, Report, as_json, report_of
from streaming.drills.reports.timeline import timeline
from streaming.drills.reports.verdict import RecoveryObjectives, judge
from streaming.drills.run import write_report
from tests.contract.output.hostile_texts import HOSTILE, unprintable
from tests.drills.episodes import episode, killed_for_six_seconds, steady

BEGAN = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
SVG = "{http://www.w3.org/2000/svg}"
VOID = {"meta", "rect", "line", "circle", "path", "br"}


def drill_report(recorded: Episode, title: str = "The job is killed") -> DrillReport:
    figures, noticed = figures_of(recorded), noticed_in(recorded)
    return DrillReport(
        drill="kill",
        title=title,
        what="kill -9 of <the job>",
        began_at=BEGAN,
        fault_at=BEGAN,
        expectations=judge(RecoveryObjectives(first_answer_seconds=60), figures, noticed),
        figures=figures,
        noticed=noticed,
        generations={"drill-1": (3, 3)},
        acknowledged=120,
        episode=recorded,
    )


@pytest.fixture
def report() -> Report:
    skipped = DrillReport(drill="clock", title="A clock", what="A clock is wrong", began_at=BEGAN, skipped="no library")
    return report_of("A coordinator of its own", BEGAN, [drill_report(killed_for_six_seconds()), skipped])


class Tags(HTMLParser):
    """Collects the tags of a page, and checks that each is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.references: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.references += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


def test_the_page_is_well_formed_and_refers_to_nothing_outside(report: Report) -> None:
    tags = Tags()
    tags.feed(page(report))
    assert tags.open == []
    assert tags.seen.count("svg") == 1
    assert "script" not in tags.seen
    assert [reference for reference in tags.references if not reference.startswith("#")] == []


def test_the_page_shows_verdict_figures_and_steps_and_escapes_texts(report: Report) -> None:
    text = page(report)
    assert "Drills of the group coordinator" in text
    assert "kill -9 of &lt;the job&gt;" in text
    assert "started &lt;again&gt;" in text
    assert "12:00:01" in text
    assert "Skipped: no library" in text
    assert "drill-1: 3 → 3" in text


def test_a_drill_that_was_not_finished_shows_why() -> None:
    unfinished = DrillReport(drill="kill", title="Killed", what="kill", began_at=BEGAN, failure="<no answer>")
    failed = report_of("A coordinator of its own", BEGAN, [unfinished])
    assert not failed.passed
    assert "&lt;no answer&gt;" in page(failed)


def test_a_run_passes_if_every_drill_that_was_not_skipped_did(report: Report) -> None:
    assert report.passed
    assert [each.verdict for each in report.drills] == ["passed", "skipped"]
    assert not report_of("", BEGAN, report.drills[1:]).passed
    expelled = episode(steady(-5, 20), [Notice(1, "member", "expelled", "")])
    assert not report_of("", BEGAN, [*report.drills, drill_report(expelled)]).passed


def test_the_json_has_every_request_and_reads_back(report: Report) -> None:
    read = msgspec.json.decode(as_json(report), type=Report)
    assert msgspec.to_builtins(read) == msgspec.to_builtins(report)
    assert read.drills[0].episode is not None
    assert len(read.drills[0].episode.requests) == 250


def test_the_timeline_has_a_point_for_each_answer_and_a_cross_for_each_error() -> None:
    requests = [*steady(-5, 10), ProbeRequest(11), ProbeRequest(12, 13, "NOT_COORDINATOR")]
    recorded = episode(requests, [Notice(3, "member", "rejoin", "a < b")], repair=2.0)
    picture = ElementTree.fromstring(timeline(recorded, figures_of(recorded), "a & b"))
    assert len(picture.findall(f"{SVG}circle")) == 150
    assert len([path for path in picture.findall(f"{SVG}path") if path.get("stroke")]) == 2
    labels = [text.text or "" for text in picture.iter(f"{SVG}text")]
    assert {"fault", "repair"} <= set(labels)
    assert any(re.fullmatch(r"[\d.]+ s without an answer", label) for label in labels)


def test_every_place_of_the_timeline_is_within_the_picture() -> None:
    picture = ElementTree.fromstring(timeline(killed_for_six_seconds(), figures_of(killed_for_six_seconds()), ""))
    _, _, width, height = map(float, (picture.get("viewBox") or "").split())
    for circle in picture.findall(f"{SVG}circle"):
        assert 0 < float(circle.get("cx", -1)) < width
        assert 0 < float(circle.get("cy", -1)) < height


def test_the_files_are_named_for_the_time_of_the_run(report: Report, tmp_path: Path) -> None:
    html, json = write_report(report, tmp_path / "reports")
    assert [html.name, json.name] == ["drill-2026-11-23T12-00-00Z.html", "drill-2026-11-23T12-00-00Z.json"]
    assert html.read_text() == page(report)


def test_texts_of_clients_are_text_in_the_page_and_escaped_in_the_json() -> None:
    notices, steps = [Notice(7.0, HOSTILE, "error", HOSTILE)], [Step(6.0, "command", HOSTILE)]
    recorded = msgspec.structs.replace(killed_for_six_seconds(), notices=notices, steps=steps)
    drilled = msgspec.structs.replace(drill_report(recorded, HOSTILE), what=HOSTILE, generations={HOSTILE: (1, 2)})
    report = report_of(HOSTILE, BEGAN, [drilled])
    shown = page(report)
    assert "<script" not in shown
    for content in (shown, as_json(report)):
        assert unprintable(content) == []
        assert "boom" in content
