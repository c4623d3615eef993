"""Bounds what one client takes of a gateway: connections, and memory for requests.

It imports nothing of the proxy's other modules; of the gateway's rooms, the limits, the metrics and ``gateway.wire``.
"""
