"""What ``group-coordinator drill`` and ``demo`` do: break a coordinator under live clients, measure, and report.

The room may import every other room but the command line, which alone imports it.
"""
