"""Benchmarks of the gateway: latency and memory, throughput, and the formation of groups.

May import everything else of tests.bench; nothing imports it.
"""
