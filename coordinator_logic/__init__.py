"""Kafka's group coordinator as a pure state machine.

This package contains the protocol only. It imports nothing of ``streaming``, no Spark, no Kafka client, no clock and
no source of randomness, and it does no I/O. Time, log positions and configuration are arguments; the results are
the responses to send and the records of what changed. :func:`coordinator_logic.step.step` is the entry point.
"""
