"""What one machine needs to run everything: a Kafka broker, the jars, and child processes that end with their parent.

It may import the contract and the logic; the job, the gateway, the drills and the command line import it.
"""
