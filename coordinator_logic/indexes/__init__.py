"""Indexes of a group's members, timers and offsets, so that no request has to search all of them.

They are derived, built when a step first needs one, and not in snapshots. The room imports only types of
:mod:`coordinator_logic.group`.
"""
