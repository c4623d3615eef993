"""The names of the topics, and the size limits of their records."""

import re
from dataclasses import dataclass

MAX_REQUEST_BYTES = 1024 * 1024
"""The maximum size of a compressed record of ``group-requests``: Kafka's default of ``max.message.bytes``."""

MAX_ROW_BYTES = 8 * MAX_REQUEST_BYTES
"""The maximum size of key and value of a record that the job writes; it replaces a larger one by an error.

Responses and journal entries contain data of requests; a leader's response has the metadata of all members.
"""

MAX_REQUEST_JSON_BYTES = 4 * MAX_REQUEST_BYTES
"""The default limit of a request's value before compression (``max-request-bytes`` of the job)."""

LONGEST_GROUP_ID_BYTES = 2**15 - 1
"""Kafka's wire protocol has the same limit: it encodes the length of a string as an int16."""

BATCH_OVERHEAD_BYTES = 64 * 1024
"""An upper bound of what a record batch adds to the size of a single record."""

CAN_WAIT = "can-wait"
"""The header of a request whose sender can wait some hundred milliseconds for the answer; without it, none can."""

LEGAL_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
"""What the whole name of any Kafka topic matches (``org.apache.kafka.common.internals.Topic``)."""


@dataclass(frozen=True)
class TopicNames:
    """The names of the topics, with a configurable prefix."""

    prefix: str = ""

    @property
    def requests(self) -> str:
        """Requests of clients, keyed by group id."""
        return f"{self.prefix}group-requests"

    @property
    def responses(self) -> str:
        """Responses, keyed by correlation id, in the partition that the request names."""
        return f"{self.prefix}group-responses"

    @property
    def journal(self) -> str:
        """The audit log: every change of a group with its cause."""
        return f"{self.prefix}group-journal"

    @property
    def directory(self) -> str:
        """The current state of each group in one record; compacted."""
        return f"{self.prefix}group-directory"

    @property
    def transactions(self) -> str:
        """The groups that take part in each open transaction, for the gateways only; compacted."""
        return f"{self.prefix}group-transactions"

    @property
    def coordinators(self) -> str:
        """Which job is the active one, as it announces itself; compacted."""
        return f"{self.prefix}group-coordinators"

    @property
    def rejects(self) -> str:
        """Records that could not be read, with the reason."""
        return f"{self.prefix}group-rejects"

    @property
    def rebalances(self) -> str:
        """Rebalances that have ended, keyed by group id; written by ``events --publish``, where that runs."""
        return f"{self.prefix}group-rebalances"

    @property
    def all(self) -> frozenset[str]:
        """All of them."""
        kept = {self.journal, self.directory, self.transactions, self.coordinators, self.rejects, self.rebalances}
        return frozenset({self.requests, self.responses, *kept})
