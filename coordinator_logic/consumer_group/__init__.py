"""The newer consumer protocol (KIP-848): members that converge one by one to a target assignment.

There is no join barrier and no leader. Three epochs drive a group: the group epoch says that a new target assignment is
needed, the target epoch which group epoch the target belongs to, and each member's epoch which target the member has
reached. A member sends one kind of request, the heartbeat, and quotes its epoch.

No API uses this room yet. Its functions are pure and change nothing. It imports the messages, the errors and the
server-side assignors.
"""
