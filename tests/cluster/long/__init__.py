"""Tests on a cluster that take minutes, which `make cluster` runs."""
