"""A member of a group of any protocol type: joining, heartbeats, and the state that its threads share.

Its modules may import the request and reply client, never the consumer.
"""
