"""The job's topics: which it needs, how it creates and checks them, and how it watches them while the query runs.

The room imports the contract only; the options, the checkpoint, the query and what starts them import it.
"""
