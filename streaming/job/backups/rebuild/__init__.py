"""Rebuilds: groups from the journal, alone or after a backup, written as a new checkpoint.

The room may import what :mod:`streaming.job.backups` may, and that room; only the command line imports it, and
:mod:`streaming.explain` the fold of the journal.
"""
