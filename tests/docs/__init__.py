"""Tests of the documents: generated parts are current, examples work."""
