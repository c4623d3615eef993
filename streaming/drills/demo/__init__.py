"""What ``make demo`` runs: a broker, a coordinator, a gateway and consumers as processes, which are stopped and killed.

The room may import ``streaming.gateway``, ``streaming.client``, ``streaming.embedded``, ``streaming.contract`` and
``coordinator_logic``; only the command line imports it.
"""
