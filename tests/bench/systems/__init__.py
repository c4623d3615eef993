"""The systems under measurement: the job as a process, and the coordinator inside a broker.

May import the load generator and the figures of tests.bench, and not the scenarios.
"""
