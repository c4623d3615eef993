"""Clients that record what they send and see, over any network: consumers, and visitors that are no members.

A network in virtual time (:mod:`tests.recovery.checker.unit`) tests the checker with them; a real one
(:mod:`tests.recovery.chaos`) tests the coordinator. Imports the logic, the form of a history from the checker, and
from the project's client the state machine of a member of the consumer group protocol.
"""
