"""Tests of committed offsets: retention, expiry and the deletion of obsolete groups."""
