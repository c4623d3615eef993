"""The coordinator as a Spark Structured Streaming query: topics, checkpoint, session, operator, metrics.

The room may import the journal, the embedded broker's jars, the clients (for their errors and to make the class
archive), the contract and the logic; only the command line, the drills and ``streaming.explain`` import it.
"""
