"""A coverage-guided fuzzer of everything that reads bytes of others; see :mod:`tests.fuzz.__main__`."""
