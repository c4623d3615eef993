"""The files of a checkpoint, as Spark writes them: which of them a start needs, and whether they are in order.

The room may import what :mod:`streaming.job.spark_internals` may. Backups and the checks before a start import it.
"""
