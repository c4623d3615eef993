"""Kafka's wire protocol in front of the real brokers: a proxy that sends group requests to the coordinator's topics.

It may import ``client``, ``embedded``, ``contract`` and ``coordinator_logic``, and nothing of the job.
"""
