"""What happened to the groups, what would have happened with other settings, and what happens now.

The room may import the job, the journal, the clients, the contract and the logic; only the command line and the drills
import it.
"""
