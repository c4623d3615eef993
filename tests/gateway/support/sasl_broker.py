"""A broker that requires SASL at one of its two listeners."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from streaming.embedded.broker import EmbeddedBroker
from streaming.embedded.ports import free_ports

__all__ = ["sasl_broker"]

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


@contextmanager
def sasl_broker(
    protocol: Literal["SASL_PLAINTEXT", "SASL_SSL"],
    users: Mapping[str, str],
    listener: Mapping[str, str],
    properties: Mapping[str, str] | None = None,
) -> Iterator[tuple[EmbeddedBroker, str]]:
    """Run a broker whose own address requires no authentication; yields it and the address that requires SASL.

    users: names and passwords for PLAIN.
    listener: properties of the SASL listener, without their prefix.
    properties: other properties of the broker.
    """
    plain, sasl, controller = free_ports(3)
    listeners = f"PLAINTEXT://127.0.0.1:{plain},{protocol}://127.0.0.1:{sasl}"
    passwords = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    listener_properties = {
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
            **{f"listener.name.{protocol.lower()}.{key}": value for key, value in listener_properties.items()},
            **(properties or {}),
        },
    ) as broker:
        yield broker, f"127.0.0.1:{sasl}"
