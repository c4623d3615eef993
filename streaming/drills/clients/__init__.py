"""The clients that live through a drill and record what they notice: probe, members over topics, a Kafka consumer.

Of the drills, its modules may import the recording and the errors.
"""
