"""A member that speaks the consumer group protocol (KIP-848): heartbeats with its epoch, and reconciliation.

Its modules may import the types that both protocols share, the request and reply client, and what is below it.
"""
