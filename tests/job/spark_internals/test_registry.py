"""The table of Spark's internals, and the check of each entry."""

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pyspark
import pytest

import streaming
from streaming.contract.errors import CannotRun
from streaming.job import spark_internals
from streaming.job.spark_internals.registry import (
    ARROW_WORKER,
    INTERNALS,
    OFF_VARIABLE,
    OWN_JVM,
    STATE_STORE_PROVIDERS,
    SparkInternal,
    is_used,
    left_out,
    reason_to_leave_out,
    warning,
)
from streaming.job.state_stores import PROVIDER, STATE_STORES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BOUND_TO_VERSIONS = [internal for internal in INTERNALS if internal.tried is not None]
SAFE_EVERYWHERE = [internal for internal in INTERNALS if internal.tried is None]


def ids(internal: SparkInternal) -> str:
    return internal.name


@pytest.fixture(autouse=True)
def without_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(OFF_VARIABLE, raising=False)


@pytest.mark.parametrize("internal", INTERNALS, ids=ids)
def test_every_internal_is_used_on_the_pyspark_that_the_project_pins(internal: SparkInternal) -> None:
    assert reason_to_leave_out(internal) is None


@pytest.mark.parametrize("internal", BOUND_TO_VERSIONS, ids=ids)
def test_an_unknown_pyspark_leaves_it_out_and_the_reason_names_the_tried_versions(internal: SparkInternal) -> None:
    assert reason_to_leave_out(internal, version="9.9.9") == f"tried with {', '.join(internal.tried or ())} only"


@pytest.mark.parametrize("internal", SAFE_EVERYWHERE, ids=ids)
def test_an_unknown_pyspark_keeps_what_relies_on_names_only(internal: SparkInternal) -> None:
    assert reason_to_leave_out(internal, version="9.9.9") is None


@pytest.mark.parametrize(
    "name", ["pyspark.worker:no_such_function", "pyspark.no_such_module:f", "pyspark:SparkContext.x"]
)
def test_a_missing_name_leaves_it_out_whatever_the_version(name: str) -> None:
    changed = replace(ARROW_WORKER, python_names=(name,))
    assert reason_to_leave_out(changed) == f"pyspark {pyspark.__version__} has no {name.replace(':', '.')}"


@pytest.mark.parametrize("switch", ["all", OWN_JVM.name, f"{ARROW_WORKER.name}, {OWN_JVM.name}"])
def test_an_internal_can_be_turned_off(monkeypatch: pytest.MonkeyPatch, switch: str) -> None:
    monkeypatch.setenv(OFF_VARIABLE, switch)
    assert not is_used(OWN_JVM)
    assert is_used(STATE_STORE_PROVIDERS)


def test_a_spark_without_java_objects_is_refused_with_the_missing_name() -> None:
    spark = cast("SparkSession", SimpleNamespace(version=pyspark.__version__))
    with pytest.raises(CannotRun, match=r"pyspark \S+ has no SparkSession._jvm"):
        left_out(spark)


def test_one_line_warns_of_all_that_are_left_out() -> None:
    assert warning({}) is None
    line = warning({ARROW_WORKER: "a reason", OWN_JVM: "another one"})
    assert line is not None
    assert "\n" not in line
    for internal, reason in ((ARROW_WORKER, "a reason"), (OWN_JVM, "another one")):
        assert f"{reason}: {internal.name} ({internal.without})" in line


def test_the_state_stores_of_the_options_are_those_of_the_table() -> None:
    assert {settings[PROVIDER] for settings in STATE_STORES.values()} == set(STATE_STORE_PROVIDERS.java_classes)


PRIVATE_ATTRIBUTES = {"_jvm", "_jsc", "_jsq", "_jsparkSession", "_gateway", "_active_spark_context"}
PRIVATE_MODULES = ("py4j", "pyspark.worker", "pyspark.daemon", "pyspark.java_gateway", "pyspark.find_spark_home")
PRIVATE = (*PRIVATE_ATTRIBUTES, *PRIVATE_MODULES)


def private_uses(file: Path) -> Iterator[str]:
    """The uses of private attributes and modules of pyspark in a source file."""
    for node in ast.walk(ast.parse(file.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Attribute) and node.attr in PRIVATE_ATTRIBUTES:
            is_own = isinstance(node.value, ast.Name) and node.value.id == "self"
            names = [] if is_own else [node.attr]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        yield from (f"{file}:{node.lineno}: {name}" for name in names if name.startswith(PRIVATE))


def test_no_other_room_uses_what_pyspark_keeps_private() -> None:
    room = Path(spark_internals.__file__).parent
    sources = [file for file in Path(streaming.__path__[0]).rglob("*.py") if room not in file.parents]
    assert [use for file in sources for use in private_uses(file)] == []
    assert any(use for file in room.glob("*.py") for use in private_uses(file)), "the check finds none at all"
