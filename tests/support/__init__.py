"""Helpers of all tests: processes, waiting, ports, topics, records, and coordinators real and scripted.

The room may import ``streaming`` and ``coordinator_logic``; every other room of the tests may import it.
"""
