"""The clients import neither Spark nor the packages of the extras."""

import subprocess
import sys

import pytest

from tests.support.waiting import LIMIT_SECONDS

HEAVY = ("pyspark", "pandas", "pyarrow", "numpy", "prometheus_client", "typer", "rich")

PROGRAM = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {heavy}:
            raise ImportError("refused: " + name)

sys.meta_path.insert(0, Refuse())
import {module}
loaded = sorted(set(sys.modules) & set({heavy}))
assert not loaded, loaded
"""


@pytest.mark.parametrize("module", ["streaming.client", "streaming.client.directory", "streaming.contract.topics"])
def test_the_clients_need_no_spark(module: str) -> None:
    program = PROGRAM.format(module=module, heavy=HEAVY)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=LIMIT_SECONDS)
    assert ended.returncode == 0, ended.stderr
