"""Chaos: runs of recorded clients over a real broker and job while faults happen, judged by the checker afterwards.

`plan` says from a seed what a run is, :mod:`.faults` what can happen to it, `run` plays it, and `campaign` plays many.
``python -m tests.recovery.chaos --runs N --seed S [--only FAULT]`` is ``make chaos``.
"""
