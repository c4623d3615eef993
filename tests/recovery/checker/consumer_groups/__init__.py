"""The rules of consumer groups (KIP-848), whose members have epochs of their own; also of classic members in them.

Imported by the checker's other modules; imports operations and intervals, and the logic's records.
"""
