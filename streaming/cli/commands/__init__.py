"""One module for each command of ``group-coordinator``.

A command may import every room; what an extra brings is imported when the command runs, after a check that the extra is
installed.
"""
