"""A gateway's limits for each connection and for all together."""

from typing import Annotated

import msgspec

from streaming.gateway.wire.loop_share import CLIENT_SHARE

Count = Annotated[int, msgspec.Meta(ge=1)]
Milliseconds = Annotated[int, msgspec.Meta(ge=1)]


class GatewayLimits(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """A gateway's limits. The defaults suit any standard Kafka client."""

    max_connections: Count = 10_000
    """Connections of clients to all listeners together, TLS handshakes included; a further one is closed at once."""

    max_connections_per_address: Count | None = None
    """Connections from one IP address. ``None``: no limit. A NAT can have thousands of clients behind one address.
    Kafka's ``max.connections.per.ip``."""

    max_frame_bytes: Annotated[int, msgspec.Meta(ge=1024, le=(1 << 31) - 1)] = 100 * 1024 * 1024
    """The largest Produce request, and the largest response that is rewritten; Kafka's ``socket.request.max.bytes``."""

    max_request_bytes: Annotated[int, msgspec.Meta(ge=1024)] = 4 * 1024 * 1024
    """The largest request other than Produce, and the memory for all requests of one connection in handlers."""

    queued_max_request_bytes: Annotated[int, msgspec.Meta(ge=1024)] = 128 * 1024 * 1024
    """The memory for the requests of all connections that the gateway collects or answers, and for responses that
    clients have yet to read, in the form in which they travel; beyond it, the gateway reads no further requests until
    some are answered, and closes connections that read nothing. A connection may have 8 KiB in any case. Kafka's
    ``queued.max.request.bytes``, which counts no responses."""

    max_request_entries: Annotated[int, msgspec.Meta(ge=1000)] = 100_000
    """Array entries of one request that the gateway decodes, and topics of a Fetch request that names them by id: some
    10 MiB of memory. A group has fewer members, an offset commit fewer partitions, and a broker fewer topics."""

    max_unauthenticated_bytes: Annotated[int, msgspec.Meta(ge=1024)] = 64 * 1024
    """The largest ApiVersions, SaslHandshake and SaslAuthenticate request, and what the gateway buffers of a connection
    before it is authenticated. A SASL token has some hundred bytes, or a few thousand."""

    authentication_timeout_ms: Milliseconds = 30_000
    """How long a client may take to authenticate, where SASL is required. Kafka's clients give up a connection by then
    (``socket.connection.setup.timeout.max.ms``)."""

    request_arrival_timeout_ms: Milliseconds = 120_000
    """How long a request may take from its first byte to its last one, without the time in which the gateway takes no
    bytes. Clients give up by then: ``request.timeout.ms`` is 30 s, and a producer's ``delivery.timeout.ms`` 120 s."""

    response_delivery_timeout_ms: Milliseconds = 120_000
    """How long a client may take to read what the gateway has written for it. While the memory of
    ``queued-max-request-bytes`` is used up, a client that reads nothing has five seconds."""

    refusal_delay_ms: Annotated[int, msgspec.Meta(ge=0)] = 100
    """How long the connection of a refused request stays open, unread: a client that connects and sends the same again
    does so ten times a second. Kafka's ``connection.failed.authentication.delay.ms``, for every refusal."""

    client_loop_percent: Annotated[int, msgspec.Meta(ge=1, le=100)] = round(CLIENT_SHARE * 100)
    """The part of the gateway's time for the large requests and responses of one client, which is a principal at an IP
    address; beyond it, they wait. What takes less than a quarter of a millisecond does not count. Raise it where many
    large clients share an address."""

    max_in_flight: Count = 100
    """Requests in flight on one connection; further ones wait until a response has left."""

    connection_buffer_bytes: Annotated[int, msgspec.Meta(ge=1024)] = 256 * 1024
    """Bytes buffered for a slow receiver, in each direction of a connection, before reading from its sender pauses."""

    connections_max_idle_ms: Milliseconds = 600_000
    """A connection without a whole request or response for this long is closed; single bytes do not count. Kafka's
    ``connections.max.idle.ms``."""

    upstream_connect_timeout_ms: Milliseconds = 10_000
    """The limit for connecting to a broker."""

    shutdown_grace_ms: Annotated[int, msgspec.Meta(ge=0)] = 10_000
    """How long a gateway that stops waits for requests in flight."""
