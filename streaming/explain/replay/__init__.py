"""A group's requests, run through the coordinator's logic again: as they were, or with other settings.

Pure but for :mod:`streaming.explain.replay.request_log`, which reads the topic.
"""
