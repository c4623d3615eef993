"""What members subscribe to where the coordinator assigns the partitions (KIP-848), and how groups learn of topics.

May import what the room around it may, and its backend.
"""
