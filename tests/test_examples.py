"""The examples of properties: the same in each run of the tests, new ones if they are asked for."""

import json
import os
import subprocess
import sys
from typing import Any

from tests.support.properties import EXAMPLES_VARIABLE

LIMIT_SECONDS = 120
PROGRAM = """
import json, sys
from hypothesis import given, strategies as st
import tests.conftest
from tests.support.properties import examples
drawn = {"ordinary": [], "few": []}
@given(st.lists(st.integers()))
def ordinary(value):
    drawn["ordinary"].append(value)
@given(st.text())
@examples(7)
def few(value):
    drawn["few"].append(value)
ordinary()
few()
json.dump(drawn, sys.stdout)
"""


def drawn(hash_seed: int, **variables: str) -> Any:
    """The examples of two properties in a run of its own: one with hypothesis' number of them, one with seven."""
    inherited = {name: value for name, value in os.environ.items() if name != EXAMPLES_VARIABLE}
    environment = {**inherited, "PYTHONHASHSEED": str(hash_seed), **variables}
    command = [sys.executable, "-c", PROGRAM]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, env=environment)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_properties_get_the_same_examples_in_each_run() -> None:
    first = drawn(hash_seed=1)
    assert drawn(hash_seed=2) == first
    assert (len(first["ordinary"]), len(first["few"])) == (100, 7)


def test_properties_get_as_many_new_examples_as_asked_for() -> None:
    asked = {EXAMPLES_VARIABLE: "50"}
    first, second = drawn(hash_seed=1, **asked), drawn(hash_seed=1, **asked)
    assert all(first[name] != second[name] for name in first)
    assert {len(examples) for examples in (*first.values(), *second.values())} == {50}
