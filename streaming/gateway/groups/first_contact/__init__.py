"""What happens when the gateway meets a group for the first time: it takes over the group's offsets at the brokers.

It imports the channel and security, and nothing of the handlers.
"""
