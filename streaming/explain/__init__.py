"""What happened to the groups: their state at any time, as rows and as Spark views.

The room may import the job, the clients, the contract and the logic; only the command line, the demo and the drills
import it.
"""
