"""The state machine of classic groups as a diagram, for the architecture document."""

from coordinator_logic.groups.classic.transitions import TRANSITIONS
from coordinator_logic.states import State


def mermaid() -> str:
    """The state machine as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", f"    [*] --> {State.EMPTY.value}"]
    for current, targets in TRANSITIONS.items():
        lines += [f"    {current.value} --> {target.value}: {why}" for target, why in targets.items()]
    lines.append(f"    {State.DEAD.value} --> [*]")
    return "\n".join(lines)
