"""Tests of the refused requests of a group."""
