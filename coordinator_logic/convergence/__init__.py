"""What a consumer group (KIP-848) does in a turn: it takes members in and out, and brings each closer to its target.

The handlers and the timers use it. It may import the rest of the logic except them, :mod:`coordinator_logic.step` and
the snapshots.
"""
