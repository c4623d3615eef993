"""Broken, cut and expensive records: what can be read of them, and how much they would make the job write.

Imports :mod:`coordinator_logic` and :mod:`streaming.job.group_types`; :mod:`streaming.job.rows` uses it.
"""
