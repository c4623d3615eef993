"""A fifth type of group, which only these tests have: the proof that a type needs no change of any other file.

Its members are workers. A worker joins, stays and leaves with one request, and nothing is assigned to it.
"""
