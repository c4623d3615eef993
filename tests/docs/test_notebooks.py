"""The cells of the notebooks run, in order, against a running coordinator."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from docs import generate as documents
from streaming.client import CoordinatorClient
from tests.support.coordinator_process import CoordinatorProcess, commit_offsets
from tests.support.waiting import wait_until

NOTEBOOKS = sorted((documents.ROOT / "docs" / "notebooks").glob("*.ipynb"))
GROUP_NOTEBOOK = documents.ROOT / "docs" / "notebooks" / "what_happened_to_a_group.ipynb"


@pytest.fixture(scope="module")
def coordinator(young_coordinator: CoordinatorProcess) -> CoordinatorProcess:
    """In place of the one that most tests share."""
    return young_coordinator


def code_cells(notebook: Path) -> list[str]:
    """The sources of a notebook's code cells, in order."""
    cells = json.loads(notebook.read_text())["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_a_notebook_has_no_outputs_and_its_cells_are_python(notebook: Path) -> None:
    cells = json.loads(notebook.read_text())["cells"]
    assert all(cell["outputs"] == [] for cell in cells if cell["cell_type"] == "code")
    for number, source in enumerate(code_cells(notebook)):
        compile(source, f"{notebook.name}, cell {number}", "exec")


def test_the_cells_about_a_group_find_its_commit(
    coordinator: CoordinatorProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = f"group-{uuid.uuid4().hex[:8]}"
    commit_offsets(coordinator, group, 42)
    with CoordinatorClient(coordinator.bootstrap_servers, topic_prefix=coordinator.topics.prefix) as client:

        def is_listed() -> bool:
            return group in {each.group_id for each in client.list_groups().groups}

        wait_until(is_listed, "the batch has written the group")
    monkeypatch.setenv("GROUP_COORDINATOR_BOOTSTRAP_SERVERS", coordinator.bootstrap_servers)
    monkeypatch.setenv("GROUP_COORDINATOR_TOPIC_PREFIX", coordinator.topics.prefix)
    monkeypatch.setenv("GROUP_COORDINATOR_CHECKPOINT", str(coordinator.checkpoint))
    names: dict[str, Any] = {}
    for source in code_cells(GROUP_NOTEBOOK):
        exec(source, names)
    assert group in set(names["groups"]["groupId"])
    commits = names["commits"].set_index("groupId")
    assert (commits.loc[group, "offset"], commits.loc[group, "topic"]) == (42, "orders")
    moved = names["moved"].set_index("groupId")
    assert moved.loc[group, "moved"] == 42
