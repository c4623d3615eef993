"""Reads entries of the journal for a story: those of one group, or those of all groups as they come."""
