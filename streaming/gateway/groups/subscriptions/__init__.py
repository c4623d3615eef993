"""What members of consumer groups (KIP-848) subscribe to, and how their groups learn of the cluster's topics.

May import what the room around it may, and its backend.
"""
