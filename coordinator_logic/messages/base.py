"""The base class of all messages, Kafka's integer types, ids of topics, and the values that mean "none"."""

from typing import Annotated

import msgspec

Int16 = Annotated[int, msgspec.Meta(ge=-(2**15), le=2**15 - 1)]
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

TOPIC_ID = "^[A-Za-z0-9_-]{22}$"
TopicId = Annotated[str, msgspec.Meta(pattern=TOPIC_ID)]
"""The id of a topic in Kafka's text form."""

NO_GENERATION = -1
NO_OFFSET = -1
NO_LEADER_EPOCH = -1
NO_TIMESTAMP = -1
AUTHORIZED_OPERATIONS_NOT_ASKED = -(2**31)


class Message(msgspec.Struct, frozen=True, rename="camel"):
    """Base class of the JSON messages: immutable, camelCase names, unknown fields ignored."""
