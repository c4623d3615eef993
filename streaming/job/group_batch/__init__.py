"""One group in one batch: from its records and its stored state to the rows to send and the new state, without Spark.

It may import :mod:`coordinator_logic`, and of the job only :mod:`streaming.job.rows` and what that imports.
"""
