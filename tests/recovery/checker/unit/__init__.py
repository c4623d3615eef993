"""Tests of the checker: hand-made histories for each rule, simulated runs, and planted faults.

A simulation plays many clients against the real state machine in virtual time. May import everything of the checker and
of the logic; nothing imports it.
"""
