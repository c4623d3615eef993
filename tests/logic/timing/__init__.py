"""Tests of deadlines, sessions and the initial delay, on the fake clock."""
