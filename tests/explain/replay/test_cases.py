"""Every case in the tree comes to the figures that are kept beside it.

To add one, write it with ``group-coordinator replay GROUP --case FILE``, and its figures as ``FILE.figures.json``.
"""

from pathlib import Path

import msgspec
import pytest

from streaming.contract.errors import BadOptions
from streaming.explain.replay.case import save_case
from streaming.explain.replay.what_if import lived
from streaming.explain.replay.world import ReplayFigures
from tests.explain.replay.recorded import load_case, restarted_client

CASES = sorted(path for path in (Path(__file__).parent / "cases").glob("*.json") if ".figures" not in path.suffixes)


def figures_beside(case: Path) -> Path:
    return case.with_suffix(".figures.json")


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_case_comes_to_its_figures(path: Path) -> None:
    expected = msgspec.json.decode(figures_beside(path).read_bytes(), type=ReplayFigures)
    assert lived(load_case(path)).figures == expected


def test_there_are_cases() -> None:
    assert CASES


def test_a_case_that_is_written_is_read_again(tmp_path: Path) -> None:
    case = restarted_client()
    save_case(case, tmp_path / "case.json")
    assert lived(load_case(tmp_path / "case.json")).decisions == lived(case).decisions


def test_a_file_that_is_no_case_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadOptions, match=r"case\.json is no case"):
        load_case(tmp_path / "case.json")
