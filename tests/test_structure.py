"""The sizes of files and rooms, and which folders there are."""

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("coordinator_logic", "streaming", "tests", "docs")

MAX_LINES, MAX_FILES = 450, 16

ROOMS = {"cli", "client", "contract", "drills", "embedded", "explain", "gateway", "job", "journal"}

FILES = sorted(path for source in SOURCES for path in (ROOT / source).rglob("*.py"))


@pytest.mark.parametrize("source", SOURCES)
def test_no_file_is_longer_than_450_lines(source: str) -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in FILES if path.is_relative_to(ROOT / source)}
    assert lengths
    assert {str(path): length for path, length in lengths.items() if length > MAX_LINES} == {}


def test_no_room_holds_more_than_16_files() -> None:
    files = Counter(path.parent for path in FILES)
    assert {str(room): count for room, count in files.items() if count > MAX_FILES} == {}


def test_streaming_holds_nothing_but_its_rooms() -> None:
    folder = ROOT / "streaming"
    assert {path.name for path in folder.iterdir() if path.is_dir() and path.name != "__pycache__"} == ROOMS
    assert {path.name for path in folder.iterdir() if path.is_file()} == {"__init__.py", "py.typed"}


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_every_room_says_what_it_is_for_and_what_it_may_import(room: str) -> None:
    documentation = (ROOT / "streaming" / room / "__init__.py").read_text()
    assert documentation.startswith('"""')
    assert "import" in documentation


def test_every_folder_of_python_files_is_a_package() -> None:
    assert [str(path.parent) for path in FILES if not (path.parent / "__init__.py").exists()] == []


def test_make_test_and_the_targets_of_the_long_tests_run_every_file_of_tests() -> None:
    command = ["make", "-n", "-B", "test", "smokes", "cluster", "image-test"]
    plan = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    named = [ROOT / name for name in re.findall(r"(?<!--ignore )\btests(?:/\w+)+(?:\.py)?", plan)]
    files = [path for path in FILES if path.name.startswith("test_")]
    assert [str(path) for path in files if not any(path.is_relative_to(folder) for folder in named)] == []


# ---- types of groups -------------------------------------------------------------------------------------------

TYPE_NAMES = re.compile(
    r"\b(CLASSIC_TYPE|CONSUMER_TYPE|ClassicGroup|ConsumerGroup)\b"
    r"|\bgroups\.(classic|consumer)\.(data|group_type)\b"
    r"|group_type\w* (==|!=) \""
)
"""What names a type of group, or compares one: Kafka's names of its APIs and of its embedded protocol do not."""

MAY_NAME_TYPES = (
    "coordinator_logic/groups/",  # their rooms, the registry and the conversions
    "coordinator_logic/messages/groups.py",  # Kafka's names, as in ListGroups
)


def test_a_types_name_is_in_its_room_the_registry_the_conversions_and_one_place_of_each_room() -> None:
    named = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in FILES
        if path.relative_to(ROOT).parts[0] in ("coordinator_logic", "streaming")
        and not str(path.relative_to(ROOT)).startswith(MAY_NAME_TYPES)
        and "group_types" not in (path.stem, path.parent.name)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if TYPE_NAMES.search(line)
    ]
    assert named == []


def test_what_every_group_has_and_what_concerns_any_group_imports_no_type() -> None:
    rooms = ("group", "records", "offsets", "handlers", "timing")
    imports = re.compile(r"^from coordinator_logic\.groups\.(?!group_type\b)", re.M)
    assert [
        str(path)
        for room in rooms
        for path in (ROOT / "coordinator_logic" / room).rglob("*.py")
        if imports.search(path.read_text())
    ] == []
