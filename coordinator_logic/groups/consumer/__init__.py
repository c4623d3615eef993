"""Consumer groups (KIP-848): members that get, one by one, what a target assignment gives them.

There is no join barrier and no leader. Three epochs drive a group: the group epoch says that a new target assignment is
needed, the target epoch which group epoch the target belongs to, and each member's epoch which target the member has
reached. A member sends one kind of request, the heartbeat, and quotes its epoch.

The modules of the room itself are the data of a group, its records, and pure functions that change nothing. What a
group does with them in a turn is in :mod:`coordinator_logic.groups.consumer.rebalance`, and how it answers in
:mod:`coordinator_logic.groups.consumer.requests`.
"""
