"""A soak: members that come, go, commit and die beside hostile clients and restarts; see :mod:`tests.soak.__main__`."""
