"""The handlers of the newer consumer protocol (KIP-848).

A handler may import what the other handlers may, and :mod:`coordinator_logic.convergence`.
"""
