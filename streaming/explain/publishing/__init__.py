"""Publishes each rebalance that has ended to the topic ``group-rebalances``, from the journal.

The job could not write these records in its batches: what a rebalance has been, from its cause to what moved, is not
part of a group's state. So a process of its own tells the story of every group, as ``events`` does.
"""
