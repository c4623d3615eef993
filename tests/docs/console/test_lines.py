"""Every line for ``group-coordinator`` in a document has a command, and options that the command knows."""

import re
from pathlib import Path

import pytest

from streaming.cli.connection import BOOTSTRAP_VARIABLE
from tests.docs.console.lines import (
    ELSEWHERE,
    GUIDE,
    OTHER_PROGRAMS,
    WITH_OTHER_PROGRAMS,
    lines_of,
    lines_of_other_programs,
    lines_to_run,
    parsed,
    text_for,
    words_of,
)
from tests.docs.console.sessions import without_blocks
from tests.docs.markdown import ROOT, name_of


@pytest.mark.parametrize("document", GUIDE, ids=name_of)
def test_each_line_of_a_document_is_understood(document: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = document.read_text()
    # The sessions go on where the first one ends, which sets the variable.
    if f"export {BOOTSTRAP_VARIABLE}=" in text or document.parent.name == "console":
        monkeypatch.setenv(BOOTSTRAP_VARIABLE, "kafka-1:9092")
    for line in lines_of(text):
        parsed(words_of(line))


OTHERS = [line for document in WITH_OTHER_PROGRAMS for line in lines_of_other_programs(document.read_text())]


@pytest.mark.parametrize(
    ("reasons", "lines"), [(ELSEWHERE, [line for _, line in lines_to_run()]), (OTHER_PROGRAMS, OTHERS)]
)
def test_each_reason_for_not_running_a_line_belongs_to_a_line_and_names_a_file(
    reasons: dict[str, str], lines: list[str]
) -> None:
    for beginning, reason in reasons.items():
        assert any(line.startswith(beginning) for line in lines), beginning
        assert (ROOT / reason.rpartition(": ")[2]).exists(), reason


def test_each_line_for_another_program_runs_somewhere() -> None:
    assert [line for line in OTHERS if text_for(line, OTHER_PROGRAMS) is None] == []


def test_each_command_of_the_page_on_deployment_is_known() -> None:
    text = without_blocks((ROOT / "docs" / "deploy.md").read_text())
    known = {f"group-coordinator {line}" for line in lines_of(text)} | set(lines_of_other_programs(text))
    assert set(re.findall(r"^ {4}(\S.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)) == known
