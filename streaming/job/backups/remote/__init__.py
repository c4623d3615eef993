"""The commands on checkpoints and backups that are not on this machine's file system: they work on local copies.

The room may import what :mod:`streaming.job.backups` may, and its commands; the command line imports it.
"""
