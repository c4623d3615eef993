"""Brokers and their addresses."""

from typing import NamedTuple

NO_BROKER = -1
"""The node id and the port in a response that names no broker."""

DEFAULT_PORT = "9092"


class ClusterUnreachable(Exception):
    """No broker answered."""


class Address(NamedTuple):
    """A host name or IP address, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class Broker(NamedTuple):
    """A broker of the real cluster and its own advertised address."""

    node_id: int
    address: Address


def bootstrap_addresses(bootstrap_servers: str) -> list[Address]:
    """Parse the addresses in librdkafka's ``bootstrap.servers``: ``[protocol://]host[:port]``, separated by commas."""
    addresses = []
    for server in bootstrap_servers.split(","):
        host, colon, port = server.rpartition("://")[2].strip().rpartition(":")
        if not colon or port.endswith("]"):
            host, port = f"{host}{colon}{port}", DEFAULT_PORT
        addresses.append(Address(host.strip("[]"), int(port)))
    return addresses
