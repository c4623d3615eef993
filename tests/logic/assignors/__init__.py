"""Tests of the client-side assignors."""
