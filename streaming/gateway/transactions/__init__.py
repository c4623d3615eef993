"""Offsets that a producer commits in a transaction, completed when the brokers' transaction coordinator ends it.

May import the gateway's rooms groups, proxy, security and wire, its options, streaming.client, streaming.contract and
coordinator_logic. docs/transactions.md explains the protocol: the participations, the requests, and each outcome.
"""
