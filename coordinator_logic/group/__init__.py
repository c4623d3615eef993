"""A group: what every group has, and what its type adds: the base of the part, timers, transactions, records.

The room knows no type. It imports messages, errors, states and the stored parts.
"""

from coordinator_logic.group.group import Group, dead_group

__all__ = ["Group", "dead_group"]
