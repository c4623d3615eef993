"""The Prometheus metrics of a gateway."""

from functools import partial

from kio.schema.errors import ErrorCode
from prometheus_client import Counter, Gauge, Histogram

from streaming.client.directory import GroupDirectory
from streaming.contract.process_metrics import process_registry
from streaming.contract.record_metrics import show_skipped_records
from streaming.gateway.wire.api_keys import API_NAMES
from streaming.gateway.wire.codec import KNOWN_VERSIONS
from streaming.gateway.wire.frames import RefusalReason

PREFIX = "group_coordinator_gateway"
LATENCY_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30, 60, 300)

NOT_DECODED = "unread"
"""The ``error`` label of a broker's response, which the gateway passes on without decoding its error."""

NO_RESPONSE = "unanswered"
"""The ``error`` label of a Produce request with acks 0."""


OTHER = "other"
"""The label of every value that is not known to the gateway. A client can invent values, and each would be a series."""

_API_LABELS = frozenset(API_NAMES.values())
_ERROR_LABELS = frozenset({NOT_DECODED, NO_RESPONSE, *(code.name.upper() for code in ErrorCode)})
_VERSION_LABELS = frozenset(
    (API_NAMES[key], version) for key, (_, highest) in KNOWN_VERSIONS.items() for version in range(highest + 1)
)


class GatewayMetrics:
    """The metrics of one gateway, in a registry of their own. Their labels are known names, or :data:`OTHER`."""

    def __init__(self) -> None:
        self.registry = process_registry(PREFIX, ("confluent-kafka",))
        self._answers: dict[tuple[str, int, str], Counter] = {}
        counter = partial(Counter, namespace=PREFIX, registry=self.registry)
        gauge = partial(Gauge, namespace=PREFIX, registry=self.registry)
        seconds = partial(
            Histogram, labelnames=["api"], namespace=PREFIX, registry=self.registry, buckets=LATENCY_BUCKETS
        )
        self._requests = counter(
            "requests",
            "Requests by error of the response; `unread`: answered by the broker, not decoded; `unanswered`: acks=0.",
            ["api", "version", "error"],
        )
        self._handler_seconds = seconds(
            "handler_seconds",
            "Seconds from a request's arrival to its response, for requests that the gateway answers.",
        )
        self._upstream_seconds = seconds(
            "upstream_seconds", "Seconds from sending a request to the real broker to the first byte of its response."
        )
        self._failed_handlers = counter(
            "failed_handlers", "Connections closed because a request's handler failed.", ["api"]
        )
        show_skipped_records(self.registry, PREFIX)
        self.connections = gauge("connections", "Open connections of clients.")
        self.buffered = gauge("buffered_bytes", "Bytes in the gateway that slow receivers have not taken yet.")
        self.request_bytes = gauge(
            "request_bytes",
            "Bytes of requests that arrive or have no response yet, and of responses that clients have yet to read.",
        )
        self.waiting_connections = gauge(
            "waiting_connections",
            "Connections whose next request or response waits, because of queued-max-request-bytes.",
        )
        self.refused = counter(
            "refused_frames", "Connections closed because of an invalid or unacceptable request.", ["reason"]
        )
        for reason in RefusalReason:
            self.refused.labels(reason)
        self.rejected_connections = counter(
            "rejected_connections",
            "Connections refused because of max-connections or max-connections-per-address.",
        )
        self.idle_connections = counter("idle_connections", "Connections closed after connections-max-idle-ms.")
        self.overdue_connections = counter(
            "overdue_connections",
            "Connections closed because a client did not authenticate, send a request or read a response in time.",
            ["awaited"],
        )
        self.first_contacts = counter(
            "first_contacts", "Lookups at the brokers of groups that are not here, by what came of them.", ["outcome"]
        )
        self.lost_upstreams = counter(
            "lost_upstreams", "Connections closed because the connection to the broker failed."
        )

    def watch(self, directory: GroupDirectory) -> None:
        """Show from now on whether the directory's reader runs, and how many records it leaves out."""
        alive = Gauge(f"{PREFIX}_reader_alive", "1 while a reader's thread runs.", ["reader"], registry=self.registry)
        alive.labels("directory").set_function(directory.is_alive)
        unreadable = Gauge(
            f"{PREFIX}_unreadable_directory_records",
            "Records of the directory topic that ListGroups leaves out.",
            registry=self.registry,
        )
        unreadable.set_function(directory.unreadable)

    def count_answer(self, api: str, version: int, error: str) -> None:
        """Count an answered request."""
        counter = self._answers.get((api, version, error))
        if counter is None:
            counter = self._answer_counter(api, version, error)
        counter.inc()

    def _answer_counter(self, api: str, version: int, error: str) -> Counter:
        """Return the counter with these labels; counters of known labels are found faster the next time."""
        is_known = (api, version) in _VERSION_LABELS and error in _ERROR_LABELS
        version_label = str(version) if (api, version) in _VERSION_LABELS else OTHER
        counter = self._requests.labels(_known_api(api), version_label, error if error in _ERROR_LABELS else OTHER)
        if is_known:
            self._answers[api, version, error] = counter
        return counter

    def time_handler(self, api: str, seconds: float) -> None:
        """Record how long a handler took."""
        self._handler_seconds.labels(_known_api(api)).observe(seconds)

    def time_upstream(self, api: str, seconds: float) -> None:
        """Record how long the broker took to start its response."""
        self._upstream_seconds.labels(_known_api(api)).observe(seconds)

    def count_failed_handler(self, api: str) -> None:
        """Count a connection that is closed because a request's handler raised."""
        self._failed_handlers.labels(_known_api(api)).inc()


def _known_api(name: str) -> str:
    return name if name in _API_LABELS else OTHER
