"""What happened to the groups, and what happens now: their state at any time, as rows, and all of them in the terminal.

The room may import the job, the clients, the contract and the logic; only the command line, the demo and the drills
import it.
"""
