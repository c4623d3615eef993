"""The scenarios of `make bench`: one file for each coordinator or subject that is measured.

May import everything else of tests.bench but its entry points (``__main__``, ``compare``, ``growth``).
"""
