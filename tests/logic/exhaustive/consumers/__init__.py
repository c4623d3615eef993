"""Exhaustive tests of consumer groups (KIP-848): every reachable state of up to three clients and their group.

The clients speak the consumer group protocol, and in some searches one speaks the classic protocol.

Unlike the search of classic groups, this one models the clients: what a consumer owns is known to the consumer alone,
and the protocol promises that no partition has two owners only if consumers follow it. The requests that a client would
not send are tried in each state as well, and must be refused there.

The names of the invariants are those of the published TLA+ specification (``consumer_group_protocol_kip_848_v2``).
"""
