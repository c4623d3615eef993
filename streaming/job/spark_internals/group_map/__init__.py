"""The groups in the JVM's heap: a class in place of Spark's own, so that a batch does not look at every group.

It is compiled once, with the Scala that pyspark ships, into a jar in the cache.
"""
