"""The checkpoint of the query: the job's own files in it, its lock, its damage.

The room may import :mod:`streaming.job.spark_internals`, the options and the topics; the session, the query and what
starts them import it.
"""
