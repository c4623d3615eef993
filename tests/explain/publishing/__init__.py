"""Tests of the topic of rebalances."""
