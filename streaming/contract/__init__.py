"""The contract between the coordinator and its clients: topic names, JSON schema, shared errors and sources of options.

Every other room may import this one; it imports only :mod:`coordinator_logic`.
"""
