"""Tests of the pure logic: a group is driven by hand, without Spark, Kafka or a clock.

They import the logic only; :mod:`tests.logic.driver` steps a group, :mod:`tests.logic.invariants` checks every step.
"""
