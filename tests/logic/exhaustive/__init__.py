"""Every state that a small group can get into, and every request and timer in each of them.

A breadth-first search over the real :func:`coordinator_logic.step.step`. The clients are left out: in each state
everything is sent that anyone could send then, sensible or not, which covers clients that retry, duplicate, come too
late, forget what they were or never come again. What remains is the group itself, and that is finite once what can
grow without bound is left out of the comparison (:mod:`.canonical`).
"""
