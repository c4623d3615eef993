"""``group-coordinator replay``."""

import json
import uuid
from pathlib import Path

import pytest

from streaming.explain.replay.what_if import lived
from tests.cli.test_commands import UNREACHABLE, printed_json, run, run_for
from tests.explain.replay.recorded import load_case
from tests.support.coordinator_process import CoordinatorProcess, commit_offsets


def test_a_replay_shows_what_the_group_did_and_writes_its_case(coordinator: CoordinatorProcess, tmp_path: Path) -> None:
    group, file = f"group-{uuid.uuid4().hex[:8]}", tmp_path / "case.json"
    commit_offsets(coordinator, group, 42)
    assert run_for(coordinator, "groups", "delete", group).returncode == 0
    replayed = printed_json(
        run_for(coordinator, "replay", group, "--case", str(file), "--anonymise", "--static", "--json")
    )
    assert replayed["lived"]["figures"] == replayed["whatIf"]["figures"]
    assert any("group deleted" in decision["text"] for decision in replayed["lived"]["decisions"])
    assert lived(load_case(file)).figures.refused_requests == 0
    assert "group-coordinator-cli" not in json.dumps(file.read_text())


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--since", "yesterday"], "is not a duration"),
        (["--session", "60"], "is not a duration"),
    ],
)
def test_a_duration_that_is_none_is_named(arguments: list[str], problem: str) -> None:
    ended = run("replay", "billing", "-b", UNREACHABLE, *arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert problem in ended.stderr


@pytest.mark.parametrize("setting", ["group.nothing=1", "group.max.size=many", "group.max.size=0"])
@pytest.mark.parametrize("option", ["--set", "--was"])
def test_a_setting_that_is_none_is_named_before_the_log_is_read(option: str, setting: str) -> None:
    ended = run("replay", "billing", "-b", UNREACHABLE, option, setting)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert option in ended.stderr
