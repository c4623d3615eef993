"""A gateway's options, from flags, environment variables and a TOML file, in this order of precedence.

Every option has one key, as the job's options have. ``--listen`` is ``GROUP_COORDINATOR_GATEWAY_LISTEN`` in the
environment and ``listen`` in the file; ``--set kafka.sasl.password=...`` is
``GROUP_COORDINATOR_GATEWAY_KAFKA_SASL_PASSWORD`` and ``kafka.sasl.password``.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from streaming.contract.errors import BadOptions
from streaming.contract.option_sources import OptionLoader
from streaming.contract.option_values import Addresses, ListenAddress, NotEmpty, TopicPrefix
from streaming.contract.ports import require_free_port
from streaming.gateway.limits import GatewayLimits, Milliseconds
from streaming.gateway.wire.brokers import Address

CLIENT_ID = "group-coordinator-gateway"
"""Of the gateway's own requests and clients."""

ENVIRONMENT_PREFIX = "GROUP_COORDINATOR_GATEWAY_"
DEFAULT_LISTEN = "127.0.0.1:19092"
CLIENT_CERTIFICATE_PROPERTIES = ("ssl.certificate.location", "ssl.certificate.pem", "ssl.keystore.location")
"""librdkafka's properties with which the gateway shows a certificate of its own to the brokers."""
WILDCARDS = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - addresses that cannot be advertised, not addresses to bind


FirstContact = Literal["take-over", "refuse", "off"]


class GatewayOptions(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """A gateway's options, validated."""

    bootstrap_servers: Addresses
    """The real Kafka brokers, ``host:port``, several separated by commas."""

    listen: ListenAddress = DEFAULT_LISTEN
    """The address for clients' ``bootstrap.servers``, ``host:port``. Each further broker is advertised at the next free
    port; port 0 selects free ports for all."""

    advertised_host: str = ""
    """The host that the gateway advertises to clients; required if ``listen`` has a wildcard. Empty: that of
    ``listen``."""

    topic_prefix: TopicPrefix = ""
    """The prefix of the coordinator's topic names."""

    metrics_port: Annotated[int, msgspec.Meta(ge=0, le=65535)] | None = None
    """The HTTP port of the Prometheus metrics and of the health pages; 0 selects a free port. ``None``: not served."""

    metrics_host: NotEmpty = "127.0.0.1"
    """The address at which metrics and health pages are served. They need no authentication: ``0.0.0.0`` shows them to
    the network."""

    tls_cert: str | None = None
    """The PEM file of the listeners' certificate chain. Without it, clients connect in plain text.

    It is loaded again within ``metadata-refresh-ms`` of a change, as is the key; new connections use them."""

    tls_key: str | None = None
    """The PEM file of the certificate's key. ``None``: in ``tls-cert``."""

    allow_shared_identity: bool = False
    """Let every client act as the gateway towards the brokers, where they know the gateway by its TLS certificate.

    Without SASL, only the gateway's certificate names a principal to the brokers, also on connections that it opens for
    clients. Off, because the brokers' ACLs would then hold for the gateway and not for its clients."""

    oauth_principal_claim: NotEmpty = "sub"
    """The claim of OAUTHBEARER tokens with the user's name: that of the brokers' ``sasl.oauthbearer.sub.claim.name``.
    The gateway records and caches under this name what the brokers decide about the user."""

    internal_topic_principals: str = ""
    """Principals that may list and use the coordinator's own topics through the gateway, ``User:alice``, several
    separated by semicolons as in a broker's ``super.users``. None by default: only the job and gateways need those
    topics."""

    hide_offsets_topic: bool = False
    """Hide the brokers' topic ``__consumer_offsets`` from clients, except from ``internal-topic-principals``. Tools
    that read it, such as Burrow, show the groups of the brokers' coordinator and none of this one; if it is hidden,
    they fail instead. Off: the gateway passes it on, as it does the brokers' other topics."""

    identity_key_file: str | None = None
    """A file with the key with which the gateway signs the client of each request event, 32 bytes or more; of several
    lines it takes the first. The job has the same file. Without it, the journal marks the client as claimed."""

    first_contact: FirstContact = "take-over"
    """What happens when the gateway meets a group that the brokers' group coordinator has: ``take-over`` of its
    offsets, once it has no members there; ``refuse``; or ``off``, which does not ask the brokers, so that
    the group begins without offsets."""

    transactions_v2: bool = True
    """Show clients the brokers' ``transaction.version``: if it is 2 or later, those that know transactions V2 (KIP-890)
    use them. Set it to false while gateways run that lack this option.

    A producer that has begun with V2 stays with it, also at a gateway with false."""

    metadata_refresh_ms: Milliseconds = 5_000
    """How often the gateway refreshes the list of brokers, their supported API versions, and the topics of consumer
    groups (KIP-848)."""

    limits: GatewayLimits = msgspec.field(default_factory=GatewayLimits)

    kafka: dict[str, str] = {}
    """librdkafka's properties for the gateway's own clients. The TLS settings apply to all connections to brokers."""

    @property
    def listen_address(self) -> Address:
        """Host and port of the first listener."""
        host, _, port = self.listen.rpartition(":")
        return Address(host.strip("[]"), int(port))

    @property
    def effective_advertised_host(self) -> str:
        """The host that the gateway advertises to clients."""
        return self.advertised_host or self.listen_address.host

    def require_free_ports(self, listen_option: str = "--listen") -> None:
        """Check that the gateway can listen. ``listen_option`` chooses the first listener's port. Raises CannotRun."""
        require_free_port(*self.listen_address, listen_option)
        if self.metrics_port is not None:
            require_free_port(self.metrics_host, self.metrics_port, "--metrics-port")

    @property
    def requires_sasl(self) -> bool:
        """Whether clients must authenticate with the brokers."""
        return self.kafka.get("security.protocol", "").upper().startswith("SASL")

    @property
    def internal_topic_users(self) -> frozenset[str]:
        """The principals of ``internal-topic-principals``."""
        return frozenset(name.strip() for name in self.internal_topic_principals.split(";") if name.strip())

    @property
    def shares_identity(self) -> bool:
        """Whether the brokers take every client for the gateway, because its TLS certificate is their only proof."""
        is_tls_only = self.kafka.get("security.protocol", "").upper() == "SSL"
        return is_tls_only and any(key in self.kafka for key in CLIENT_CERTIFICATE_PROPERTIES)


_LOADER = OptionLoader(GatewayOptions, ENVIRONMENT_PREFIX)


def load_gateway_options(
    flags: Mapping[str, object],
    environ: Mapping[str, str] | None = None,
    file: Path | None = None,
    defaults: Mapping[str, object] | None = None,
) -> GatewayOptions:
    """Load the gateway's options, see :meth:`OptionLoader.load`. Raises :class:`BadOptions`."""
    options = _LOADER.load(flags, environ, file, defaults)
    if options.effective_advertised_host in WILDCARDS:
        raise BadOptions(f"listen {options.listen}: this host cannot be advertised to clients, give --advertised-host")
    if options.tls_key is not None and options.tls_cert is None:
        raise BadOptions("tls-key: give --tls-cert too")
    files = {"tls-cert": options.tls_cert, "tls-key": options.tls_key, "identity-key-file": options.identity_key_file}
    for key, file_name in files.items():
        _require_readable(key, file_name)
    if options.shares_identity and not options.allow_shared_identity:
        raise BadOptions(
            "kafka.security.protocol: with a client certificate and without SASL, the brokers take every client of the "
            "gateway for the gateway itself. Use SASL_SSL, so that each client authenticates, or accept this with "
            "--set allow-shared-identity=true"
        )
    return options


def _require_readable(key: str, file: str | None) -> None:
    """Check an option's file before the gateway connects to anything. Raises BadOptions."""
    try:
        if file is not None:
            Path(file).open("rb").close()
    except OSError as error:
        raise BadOptions(f"{key}: {file} cannot be read: {error.strerror}") from error
