"""Journals of many records, and how long a command reads them."""
