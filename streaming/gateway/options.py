"""A gateway's options: from flags, environment variables and a TOML file, in this order of precedence.

As with the job's options (:mod:`streaming.options`), every option has one key: ``--listen`` is
``GROUP_COORDINATOR_GATEWAY_LISTEN`` in the environment and ``listen`` in the file, ``--set kafka.sasl.password=...``
is ``GROUP_COORDINATOR_GATEWAY_KAFKA_SASL_PASSWORD`` and ``kafka.sasl.password``.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from streaming.gateway.addresses import Address
from streaming.gateway.limits import Limits, Milliseconds
from streaming.options import BadOptions, Given, given_in_file

__all__ = ["GatewayOptions", "load_gateway_options"]

ENVIRONMENT_PREFIX = "GROUP_COORDINATOR_GATEWAY_"
DEFAULT_LISTEN = "127.0.0.1:19092"
WILDCARDS = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - what cannot be told to clients, not what is bound

KAFKA = "kafka"


class GatewayOptions(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """A gateway's options, validated."""

    bootstrap_servers: Annotated[str, msgspec.Meta(min_length=1)]
    """Where the real Kafka is: ``host:port``, several separated by commas."""

    listen: Annotated[str, msgspec.Meta(pattern=r"^.*:\d{1,5}$")] = DEFAULT_LISTEN
    """Where clients connect first, ``host:port``. The brokers are shown from this port on; port 0 takes free ones."""

    advertised_host: str = ""
    """The host that clients are told; needed where the gateway listens on all addresses."""

    topic_prefix: Annotated[str, msgspec.Meta(pattern=r"^[a-zA-Z0-9._-]{0,200}$")] = ""
    """What the names of the coordinator's topics begin with."""

    metrics_port: Annotated[int, msgspec.Meta(ge=0, le=65535)] | None = None
    """The port of the Prometheus metrics; 0 takes a free one."""

    tls_cert: str | None = None
    tls_key: str | None = None
    """PEM files of the listeners' certificate and its key; without them, clients connect in plain text."""

    metadata_refresh_ms: Milliseconds = 5_000
    """How often the gateway looks for brokers that came or went, and for what they offer."""

    limits: Limits = msgspec.field(default_factory=Limits)

    kafka: dict[str, str] = {}
    """librdkafka's properties for the gateway's own clients; its TLS is that of the clients' connections too."""

    @property
    def listen_address(self) -> Address:
        """Host and port of the first listener."""
        host, _, port = self.listen.rpartition(":")
        return Address(host.strip("[]"), int(port))

    @property
    def shown_host(self) -> str:
        """The host that clients are told."""
        return self.advertised_host or self.listen_address.host

    @property
    def requires_sasl(self) -> bool:
        """Whether the brokers want to know who somebody is."""
        return self.kafka.get("security.protocol", "").upper().startswith("SASL")


_LIMITS = {field.encode_name: field.type for field in msgspec.structs.fields(Limits)}
_OWN: dict[str, Any] = {
    field.encode_name: field.type
    for field in msgspec.structs.fields(GatewayOptions)
    if field.name not in ("limits", KAFKA)
}


def load_gateway_options(
    flags: Mapping[str, object], environ: Mapping[str, str] | None = None, file: Path | None = None
) -> GatewayOptions:
    """Put the options together. Flags that are None were not given.

    Raises :class:`BadOptions`, which names every problem and where it comes from.
    """
    given: dict[str, Given] = {}
    if file is not None:
        given.update(given_in_file(file))
    given.update(_from_environment(environ or {}))
    given.update(_from_flags(flags))
    options = _validated(given)
    if options.shown_host in WILDCARDS:
        raise BadOptions(f"listen {options.listen}: clients cannot be told this host, give --advertised-host")
    if options.tls_key is not None and options.tls_cert is None:
        raise BadOptions("tls-key: give --tls-cert too")
    return options


def _from_flags(flags: Mapping[str, object]) -> Iterator[tuple[str, Given]]:
    for name, value in flags.items():
        if value is not None:
            key = name if "." in name else name.replace("_", "-")
            yield key, Given(str(value) if isinstance(value, Path) else value, f"given as --{key}")


def _from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, Given]]:
    known = {key.replace("-", "_").upper(): key for key in (*_OWN, *_LIMITS)}
    for variable, value in environ.items():
        name = variable.removeprefix(ENVIRONMENT_PREFIX)
        if name == variable:
            continue
        if name in known:
            yield known[name], Given(value, f"given as {variable}")
        elif name.startswith("KAFKA_"):
            yield name.lower().replace("_", "."), Given(value, f"given as {variable}")


def _validated(given: Mapping[str, Given]) -> GatewayOptions:
    own: dict[str, object] = {}
    limits: dict[str, object] = {}
    kafka: dict[str, str] = {}
    problems = []
    for key, (value, where) in given.items():
        group, _, rest = key.partition(".")
        try:
            if key in _OWN:
                own[key] = msgspec.convert(value, _OWN[key], strict=False)
            elif key in _LIMITS:
                limits[key] = msgspec.convert(value, _LIMITS[key], strict=False)
            elif group == KAFKA and rest:
                kafka[rest] = str(value).lower() if isinstance(value, bool) else str(value)
            else:
                raise ValueError("there is no such option")
        except ValueError as error:
            problems.append(f"{key} ({where}): {error}")
    if "bootstrap-servers" not in given:
        problems.append("bootstrap-servers is missing: give --bootstrap-servers")
    if problems:
        raise BadOptions("\n".join(problems))
    return msgspec.convert({**own, "limits": limits, KAFKA: kafka}, GatewayOptions)
