"""The member of `librdkafka`, with the newest release of confluent-kafka in the place of the project's own.

The project itself stays at an older one, for the reason in pyproject.toml. The Makefile puts the newest beside it.
"""

import runpy
import sys
from pathlib import Path

NEWEST = Path(sys.prefix) / "types"

sys.path.insert(0, str(NEWEST))
runpy.run_module("tests.clients.members.librdkafka", run_name="__main__")
