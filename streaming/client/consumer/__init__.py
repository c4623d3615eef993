"""The consumer: subscription, assignment, positions, fetching and committed offsets, as in Kafka's Java client.

Its modules may import ``streaming.client.membership`` and everything below that.
"""
