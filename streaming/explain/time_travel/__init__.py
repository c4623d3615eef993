"""Groups as of any time, folded from the journal, and their rows; without Spark.

The room may import the journal, the group's state rows, the clients and the logic.
"""
