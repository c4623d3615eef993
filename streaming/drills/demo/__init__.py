"""The demo: consumers of three client libraries while consumers and jobs are killed, on the drills' own coordinator.

Of the drills, its modules may import all but the runs of drills, their scenarios and their reports.
"""
