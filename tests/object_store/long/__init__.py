"""Tests with an object store that take minutes, which `make cluster` runs."""
