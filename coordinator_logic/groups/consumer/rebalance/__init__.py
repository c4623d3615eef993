"""What a consumer group does in a turn: it takes members in and out, and brings each closer to its target.

The requests and the timers of the room use it.
"""
