"""Which of several jobs for the same topics is active, and since which epoch.

:mod:`.announcements` is what the active job announces on a topic, and how others watch it; :mod:`.lease` is how a job
becomes the active one, and how it learns that it no longer is. Nothing here knows Spark; the room may import the
clients and the starts.
"""
