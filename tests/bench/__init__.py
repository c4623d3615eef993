"""Benchmarks of the job, the gateway and the protocol: `make bench`, `make bench-growth`, and `compare`.

May import everything of the project and of the other tests; nothing imports it.
"""
