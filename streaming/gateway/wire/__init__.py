"""Kafka's wire protocol as data: frames, kio's entities, brokers' addresses, and what a request handler receives.

It opens no connection, and it imports nothing of the gateway's other rooms.
"""
