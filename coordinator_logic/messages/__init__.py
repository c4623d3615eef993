"""The messages of the coordinator: requests, responses and their envelopes. Imports nothing else of the project.

Each API has one request type and one response type, with Kafka's fields under Kafka's names. A type has the fields
of every supported version; a field that a version lacks has the default that Kafka gives it. Names are snake_case
here and camelCase in JSON, and bytes are base64 in JSON. Integers have the bounds of Kafka's wire types (``int16``,
``int32``, ``int64``); a value outside these bounds makes a request malformed.

Two parts of the wire protocol have no counterpart here: ``throttleTimeMs`` (topics have no quotas) and tagged
fields.

Source: the request and response schemas of Apache Kafka 4.3 (``clients/src/main/resources/common/message``).
"""

from typing import TypeAlias

from coordinator_logic.messages.base import *
from coordinator_logic.messages.base import Message
from coordinator_logic.messages.consumer_groups import *
from coordinator_logic.messages.envelopes import *
from coordinator_logic.messages.groups import *
from coordinator_logic.messages.membership import *
from coordinator_logic.messages.offset_resets import *
from coordinator_logic.messages.offset_take_over import *
from coordinator_logic.messages.offsets import *
from coordinator_logic.messages.quarantine import *
from coordinator_logic.messages.transactions import *

RequestBody: TypeAlias = Message
"""The body of a request: of any API, also of one that a type of group brings."""
ResponseBody: TypeAlias = Message
"""The body of a response."""
