"""Tests of the handlers, one file for each API or subject, and the table of answers by state.

They import the logic and the driver; only the table also imports the documents that are generated from it.
"""
