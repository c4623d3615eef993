"""The coordinator's journal: its reader, its entries, and the fold of its entries with observers.

The room may import the clients, the contract and the logic; the job's commands on backups, ``streaming.explain`` and
the command line import it.
"""
