"""Kafka's group APIs, answered by the coordinator behind the topics instead of by the brokers.

May import coordinator_logic, streaming.contract, streaming.client, and the gateway's options and its rooms security
and wire.
"""
