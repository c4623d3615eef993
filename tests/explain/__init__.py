"""Tests of streaming.explain."""
