"""Tries everything of the table of Spark's internals with other versions of pyspark: see :mod:`.__main__`.

May import everything of the project and of the other tests; nothing imports it.
"""
