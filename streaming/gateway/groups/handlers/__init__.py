"""One file per group API: what the gateway checks itself, and which request events it appends for the rest.

May import what the groups room may; the registry and the types of groups, one level up, list the handlers.
"""
