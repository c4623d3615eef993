"""The conversion between Kafka's records and the logic's types: requests are read, and rows for the Kafka sink written.

It may import :mod:`streaming.job.hostile_records`, :mod:`streaming.job.measures` and what stands below the job.
"""
