"""Backups: a copy of a checkpoint, taken while the job runs; its check, its restore; and checkpoints written anew.

A backup needs neither Spark nor Kafka. The check reads the state through Spark, and the journal if it has brokers. The
room may import the session, Spark's internals, the election, the group's state rows, the journal, the clients and the
logic; only the command line imports it.
"""
