"""Conversions of a group from one type to another, one file for each direction."""
