"""The newer consumer protocol (KIP-848): members that converge one by one to a target assignment.

There is no join barrier and no leader. Three epochs drive a group: the group epoch says that a new target assignment is
needed, the target epoch which group epoch the target belongs to, and each member's epoch which target the member has
reached. A member sends one kind of request, the heartbeat, and quotes its epoch.

The room holds the data of a consumer group, its records, and pure functions that change nothing; what a group does with
them in a turn is in :mod:`coordinator_logic.convergence`. It imports the messages, the errors, the states, the
server-side assignors and the parts of snapshots that stay encoded.
"""
