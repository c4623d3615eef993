"""The clients that live through a drill and record what they notice: probe, members over topics, Kafka consumers.

Of the drills, its modules may import the recording and the waiting.
"""
