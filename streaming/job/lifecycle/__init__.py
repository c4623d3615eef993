"""The job from its start to its stop: topics, session, election, query, signals.

The room may import every other room of the job; the command line and the class archive import it.
"""
