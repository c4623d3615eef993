"""The base class of all messages, Kafka's integer types, ids of topics, and the values that mean "none"."""

from typing import Annotated

import msgspec

Int16 = Annotated[int, msgspec.Meta(ge=-(2**15), le=2**15 - 1)]
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

TOPIC_ID = "^[A-Za-z0-9_-]{22}$"
TopicId = Annotated[str, msgspec.Meta(pattern=TOPIC_ID)]
"""The id of a topic in Kafka's text form."""
LARGEST_EPOCH = 2**53 - 1
"""The largest integer that every reader of JSON takes exactly. No job starts so often."""

JobEpoch = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_EPOCH)]
"""The epoch of a job: grows with every start of the query, 0 if it is not known."""

LAST_TIME = 253_402_300_799_999
"""The end of the year 9999, ms since the epoch of Unix: a later time has no date."""

Time = Annotated[int, msgspec.Meta(ge=0, le=LAST_TIME)]
"""A time of the coordinator's own, ms since the epoch of Unix."""

LogOffset = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""The offset of a record."""

OptionalTopicId = Annotated[str, msgspec.Meta(pattern=f"{TOPIC_ID}|^$", max_length=22)]
"""The id of a topic in Kafka's text form; empty if it is not known."""

NO_GENERATION = -1
NO_OFFSET = -1
NO_LEADER_EPOCH = -1
NO_TIMESTAMP = -1
AUTHORIZED_OPERATIONS_NOT_ASKED = -(2**31)


class Message(msgspec.Struct, frozen=True, rename="camel"):
    """Base class of the JSON messages: immutable, camelCase names, unknown fields ignored."""

    @property
    def can_wait(self) -> bool:
        """Whether its sender can wait some hundred milliseconds for the answer: a heartbeat that changes nothing."""
        return False
