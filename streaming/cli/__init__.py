"""The command line: what ``group-coordinator`` prints and with which exit code it ends.

It may import every other room; nothing imports it.
"""
