"""Committed offsets of a group: how they are committed and expired.

Imports the group, its records and messages, but no handler; the handlers of the offset APIs import this room.
"""
