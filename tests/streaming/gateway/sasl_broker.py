"""A broker that wants SASL at one of its two listeners, and the free ports that it takes to start one."""

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from streaming.broker import EmbeddedBroker

__all__ = ["free_ports", "sasl_broker"]

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


def free_ports(count: int) -> list[int]:
    """Ports that are free, all different."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [found.getsockname()[1] for found in sockets]
    for found in sockets:
        found.close()
    return ports


@contextmanager
def sasl_broker(
    protocol: Literal["SASL_PLAINTEXT", "SASL_SSL"],
    users: Mapping[str, str],
    listener: Mapping[str, str],
    properties: Mapping[str, str] | None = None,
) -> Iterator[tuple[EmbeddedBroker, str]]:
    """The broker, which asks nothing at its own address, and the address where it wants SASL.

    ``users``: name and password of those that PLAIN lets in. ``listener``: properties of that listener, without its
    prefix. ``properties``: any others of the broker.
    """
    plain, sasl, controller = free_ports(3)
    listeners = f"PLAINTEXT://127.0.0.1:{plain},{protocol}://127.0.0.1:{sasl}"
    passwords = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    of_listener = {
        "sasl.enabled.mechanisms": "PLAIN",
        "plain.sasl.jaas.config": f"{PLAIN_MODULE} required {passwords};",
        **listener,
    }
    with EmbeddedBroker(
        port=plain,
        properties={
            "listeners": f"{listeners},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": listeners,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,{protocol}:{protocol},CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            **{f"listener.name.{protocol.lower()}.{key}": value for key, value in of_listener.items()},
            **(properties or {}),
        },
    ) as broker:
        yield broker, f"127.0.0.1:{sasl}"
