"""Everything of Spark that the job uses and Spark does not promise: private names of pyspark, undocumented classes.

Each use checks itself at the start (see :mod:`.registry`). The room may import the operator and its rows, the embedded
Java, the contract and the logic; only the session, the query and what starts them import it.
"""
