"""Kafka's own published tests of groups, through the job and the gateway: `make kafka-tests`.

May import tests.support and tests.bench.environment; only docs imports it, for its list of exceptions.
"""
