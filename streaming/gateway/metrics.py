"""Prometheus metrics of one gateway."""

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from streaming.errors import CannotRun
from streaming.gateway.frames import Refusal

__all__ = ["GatewayMetrics"]

PREFIX = "group_coordinator_gateway"
LATENCY_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30, 60, 300)


class GatewayMetrics:
    """The metrics, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            f"{PREFIX}_requests",
            "Requests by error of the answer; `unread` for answers of the broker, `unanswered` for acks=0.",
            ["api", "version", "error"],
            registry=self.registry,
        )
        self._handler_seconds = Histogram(
            f"{PREFIX}_handler_seconds",
            "From a request's arrival to its answer, for requests that the gateway answers.",
            ["api"],
            registry=self.registry,
            buckets=LATENCY_BUCKETS,
        )
        self._upstream_seconds = Histogram(
            f"{PREFIX}_upstream_seconds",
            "From a request's arrival to the first byte of the real broker's answer.",
            ["api"],
            registry=self.registry,
            buckets=LATENCY_BUCKETS,
        )
        self.connections = Gauge(f"{PREFIX}_connections", "Connections of clients.", registry=self.registry)
        self.buffered = Gauge(
            f"{PREFIX}_buffered_bytes", "What waits in the gateway for slow receivers.", registry=self.registry
        )
        self._refused = Counter(
            f"{PREFIX}_refused_frames",
            "Connections closed for what a client sent.",
            ["reason"],
            registry=self.registry,
        )
        for reason in Refusal:
            self._refused.labels(reason.value)
        self.rejected_connections = Counter(
            f"{PREFIX}_rejected_connections", "Connections beyond max-connections.", registry=self.registry
        )
        self.idle_connections = Counter(
            f"{PREFIX}_idle_connections", "Connections closed because they were idle.", registry=self.registry
        )
        self._lost_upstreams = Counter(
            f"{PREFIX}_lost_upstreams", "Connections closed because the broker's failed.", registry=self.registry
        )
        self._failed_handlers = Counter(
            f"{PREFIX}_failed_handlers",
            "Connections closed because a handler failed.",
            ["api"],
            registry=self.registry,
        )

    def count_answer(self, api: str, version: int, error: str) -> None:
        """A request was answered."""
        self._requests.labels(api, version, error).inc()

    def time_handler(self, api: str, seconds: float) -> None:
        """A handler has answered."""
        self._handler_seconds.labels(api).observe(seconds)

    def time_upstream(self, api: str, seconds: float) -> None:
        """The broker has begun to answer."""
        self._upstream_seconds.labels(api).observe(seconds)

    def count_refusal(self, reason: Refusal) -> None:
        """A connection is closed for what its client sent."""
        self._refused.labels(reason.value).inc()

    def count_lost_upstream(self) -> None:
        """A connection is closed since the broker's end failed."""
        self._lost_upstreams.inc()

    def count_failed_handler(self, api: str) -> None:
        """A connection is closed since its request's handler raised."""
        self._failed_handlers.labels(api).inc()

    def serve(self, port: int) -> int:
        """Serve the metrics until the process ends, on this port or, for 0, a free one; gives the port."""
        try:
            server, _thread = prometheus_client.start_http_server(port, registry=self.registry)
        except OSError as error:
            raise CannotRun(f"metrics-port {port} cannot be used: {error.strerror}") from error
        return server.server_port
