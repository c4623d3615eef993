"""What happened to the groups, and what would have happened with other settings.

The room may import the job, the clients, the contract and the logic; only the command line, the demo and the drills
import it.
"""
