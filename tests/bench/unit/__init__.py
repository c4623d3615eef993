"""Tests of the benchmark itself: statistics, load generators and reports.

May import everything of tests.bench; nothing imports it.
"""
