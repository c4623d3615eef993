"""The proxy in front of the real brokers: listeners, clients' connections, upstream connections, advertised addresses.

It knows group APIs only as handlers by API key; it may import ``gateway.security``, ``gateway.wire`` and the options.
"""
