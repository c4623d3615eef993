"""The same short fuzzing in each run, and the inputs that once escaped. ``make fuzz`` looks for new ones."""

import base64
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

LIMIT_SECONDS = 900
INPUTS = 8_000
"""For each target; all take 10 s of processor time."""

ESCAPED = {
    "an array of 2^32 items in a frame of 40 bytes, for which kio reserved memory": (
        "frames",
        "AQIEAAAABwAEZnV6egAFdAhleHQAAAABBQIFdGWIi/mVeXRlcwAA",
    ),
    "a broker's DescribeCluster response without brokers": (
        "frames",
        "AgECAAAABwAAAAAFAAAFZXR4dAUBdGV4dAAAAAECAAAAAQV0ZXh0AAAAAQV0ZXh0AQAAAAABAA==",
    ),
    "a broker's Metadata response with 2^60 brokers, for which kio reserved memory": (
        "frames",
        "AgAJAAJ0AAAF/////////x8mAGUA",
    ),
    "a snapshot whose clock is beyond Long": (
        "snapshots",
        "AdwAFqFnozAtMKVFbXB0eaREZWFkzwAAAYvP5WgAAMDAwICBqHBheW1lbnRzgQCWB8CgzwAAAYvP5WgA"
        "wAICz///AYvP5WgAkJDCgaZlcHhpcnmWpmV4cGlyec8AAAGLz+VdAM4kEp7noAAAwIABAAA=",
    ),
}
"""By what was wrong: the target and the input, in base64."""


@pytest.mark.parametrize(("target", "encoded"), ESCAPED.values(), ids=ESCAPED)
def test_an_input_that_escaped_does_so_no_more(target: str, encoded: str) -> None:
    import_module(f"tests.fuzz.targets.{target}").run(base64.b64decode(encoded))


@pytest.mark.skipif(sys.platform != "linux", reason="atheris has wheels for Linux only")
@pytest.mark.timeout(LIMIT_SECONDS + 10)
def test_fuzzing_with_the_same_inputs_in_each_run_finds_nothing(tmp_path: Path) -> None:
    arguments = ["--inputs", str(INPUTS), "--seed", "1", "--corpus", str(tmp_path)]
    command = [sys.executable, "-m", "tests.fuzz", *arguments]
    environment = {**os.environ, "COLUMNS": "100"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, env=environment)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert "False" in done.stdout
    assert "True" not in done.stdout
