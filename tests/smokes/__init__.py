"""Every command that the Makefile or a document names, in its smallest form: what nothing runs is broken.

May import every room of the tests; nothing imports it.
"""
