"""Who moved the offsets of a group, and plans to move them: pure, but for what asks the brokers for positions.

The room may import the journal, the clients, the contract and the logic.
"""
