"""Keeps clients of the gateway away from the coordinator's own topics: their records decide what groups do.

It may import what ``gateway.security`` may. Nothing here does I/O except through the callables that it is given.
"""
