"""What ``group-coordinator drill`` does: break a coordinator under live clients, measure, and write a report.

The room may import ``streaming.job``, ``streaming.gateway``, ``streaming.client``, ``streaming.embedded``,
``streaming.contract`` and ``coordinator_logic``; only the command line imports it.
"""
