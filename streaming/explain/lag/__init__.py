"""How far a group was behind: its committed offsets over time, and where the logs of its partitions ended then.

Nobody samples lag into the journal. So it follows from two sources: the commits in the journal, and the brokers' answer
to which record was the first one of a time. Needs no Spark.
"""
