"""The timeouts of the transaction APIs and of recovery."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class TransactionTimeouts:
    """The timeouts of the transaction side of a gateway, in seconds."""

    log_metadata_seconds: float = 4.0
    """How long Kafka may take to report the end of the participation log."""

    log_read_seconds: float = 4.0
    """How long reading the participation log to that end may take."""

    log_delivery_seconds: float = 4.0
    """How long a broker may take to append a participation."""

    marker_seconds: float = 10.0
    """How long the response to WriteTxnMarkers is expected.

    No request waits that long: the producer gives up an event that no broker accepts earlier."""

    recovery_interval_seconds: float = 1.0
    """The pause between two runs of recovery."""

    recovery_delay_seconds: float = 3.0
    """How old a participation must be before recovery asks the broker. Most transactions have ended by then."""
