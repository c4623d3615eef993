"""TLS, SASL and authorization: who a client is, as authenticated by the broker, and what the cluster's ACLs allow it.

It may import ``gateway.wire`` and the Kafka clients of ``streaming.client``.
"""
