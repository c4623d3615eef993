"""Kafka's group coordinator as a pure state machine.

This package is the protocol and nothing else: it imports no Spark, no Kafka client, no clock, no randomness
and does no I/O. Time, places in the log and configuration are arguments; what comes out are responses to send
and records of what changed. :func:`coordinator_logic.step.step` is the one entry point.
"""
