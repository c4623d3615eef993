"""Plants a defect at the start of a Python process; see the room."""

import os

if name := os.environ.get("CHAOS_BROKEN"):
    from tests.recovery.chaos.broken.defects import DEFECTS

    DEFECTS[name]()
