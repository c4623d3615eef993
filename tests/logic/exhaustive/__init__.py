"""Exhaustive tests: every reachable state of small groups, and every request and timer in each of these states.

A breadth-first search runs the real :func:`coordinator_logic.step.step`. It does not model clients: in each state it
sends every request that any client could send, valid or not. This covers clients that retry, send duplicates, are late,
lose their state or disappear. The number of states is finite because the comparison of states ignores everything that
grows without bound (:mod:`.canonical`).
"""
