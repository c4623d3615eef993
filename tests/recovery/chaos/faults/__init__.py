"""The faults: one small function each, with a name, what it needs, and what it breaks.

A fault breaks something, repairs it, and returns a line that says what it did. It acts on a
:class:`~tests.recovery.chaos.stage.Stage`: the processes of a run.
"""
