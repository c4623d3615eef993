"""The manager of a checkpoint's files in an object store: a class that Spark loads by its name.

It is compiled once, with the Scala that pyspark ships, into a jar in the cache.
"""
