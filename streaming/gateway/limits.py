"""How much one client, and all of them together, may ask of a gateway."""

from typing import Annotated

import msgspec

__all__ = ["Limits"]

Count = Annotated[int, msgspec.Meta(ge=1)]
Milliseconds = Annotated[int, msgspec.Meta(ge=1)]


class Limits(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """Limits of a gateway, with defaults for clients that behave."""

    max_connections: Count = 10_000
    """Clients' connections to all listeners together; a further one is closed at once."""

    max_frame_bytes: Annotated[int, msgspec.Meta(ge=1024, le=(1 << 31) - 1)] = 100 * 1024 * 1024
    """The largest Produce request, and the largest answer that is rewritten; Kafka's ``socket.request.max.bytes``."""

    max_request_bytes: Annotated[int, msgspec.Meta(ge=1024)] = 4 * 1024 * 1024
    """The largest request but Produce, and what all the requests of one connection that are being handled may take."""

    max_in_flight: Count = 100
    """Requests of one connection that may wait for their answers; the next one is taken when one has left."""

    connection_buffer_bytes: Annotated[int, msgspec.Meta(ge=1024)] = 256 * 1024
    """What may wait for a slow receiver, in each direction of a connection, until its sender has to wait too."""

    connections_max_idle_ms: Milliseconds = 600_000
    """A connection without a request for so long is closed; Kafka's ``connections.max.idle.ms``."""

    upstream_connect_timeout_ms: Milliseconds = 10_000
    """How long a broker may take to accept a connection."""

    shutdown_grace_ms: Annotated[int, msgspec.Meta(ge=0)] = 10_000
    """How long requests in flight may take at the end."""
