"""The files for a forge: the workflow runs targets of the Makefile, and the templates are as forges read them."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.markdown import DOCUMENTS, ROOT, name_of

TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
WORKFLOW = ROOT / ".github" / "workflows" / "test.yml"
LONG_WORKFLOW = ROOT / ".github" / "workflows" / "long.yml"
TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
FORMS = [template for template in TEMPLATES if template.name != "config.yml"]
INPUTS = {"checkboxes", "dropdown", "input", "textarea"}
NAMED = re.compile(r"`make ([a-z-]+)[^`]*`")


def loaded(file: Path) -> Any:
    """The content of a YAML file."""
    return yaml.safe_load(file.read_text())


def test_the_workflow_runs_the_two_commands_of_the_makefile() -> None:
    [job] = loaded(WORKFLOW)["jobs"].values()
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands == ["make check", "make test"]
    assert {command.removeprefix("make ") for command in commands} <= TARGETS


def test_the_weekly_workflow_runs_what_make_test_leaves_out() -> None:
    [job] = loaded(LONG_WORKFLOW)["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == ["make ${{ matrix.command }}"]
    assert job["strategy"]["matrix"]["command"] == ["long", "cluster", "smokes"]
    assert {"long", "cluster", "smokes"} <= TARGETS


def test_the_workflow_has_the_supported_versions_of_java_and_python() -> None:
    [job] = loaded(WORKFLOW)["jobs"].values()
    matrix = job["strategy"]["matrix"]
    assert matrix == {"java": ["17", "21"], "python": ["3.11"]}
    required = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert required == f">={matrix['python'][0]}"
    given = {key: value for step in job["steps"] for key, value in step.get("with", {}).items()}
    assert given["java-version"] == "${{ matrix.java }}"
    assert given["python-version"] == "${{ matrix.python }}"


def test_issues_are_made_from_a_form() -> None:
    assert len(FORMS) >= 2
    assert loaded(ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml") == {"blank_issues_enabled": False}


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_a_form_has_a_name_and_fields_with_ids_and_labels(form: Path) -> None:
    content = loaded(form)
    assert content["name"]
    assert content["description"]
    fields = [element for element in content["body"] if element["type"] != "markdown"]
    assert {field["type"] for field in fields} <= INPUTS
    identifiers = [field["id"] for field in fields]
    assert len(set(identifiers)) == len(identifiers)
    for field in fields:
        assert field["attributes"]["label"]
        assert ("options" in field["attributes"]) == (field["type"] in ("checkboxes", "dropdown"))
        assert all(isinstance(option, (str, dict)) for option in field["attributes"].get("options", []))


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_make_target_that_a_document_names_exists(document: Path) -> None:
    assert set(NAMED.findall(document.read_text())) <= TARGETS
