"""Tests of what an operator sees of a running job."""
