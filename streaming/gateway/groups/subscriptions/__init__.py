"""What members subscribe to in groups that assign partitions themselves, and how these learn of the cluster's topics.

May import what the room around it may, and its backend.
"""
