"""What an operator sees of a running job.

It may import the room of Spark's internals, and neither the query nor the session.
"""
