"""The envelopes of requests and responses, which are part of the public contract of the topics."""

from typing import Annotated

import msgspec

from coordinator_logic.messages.base import Int16, Int64, JobEpoch, Message

LONGEST_CORRELATION_ID = 255


class RequestEnvelope(Message, frozen=True):
    """The value of a record of ``group-requests``; its key is the group id.

    The sender chooses ``correlation_id``, which must be unique across all senders (for example a UUID); the response
    repeats it. ``reply_partition`` is the partition of ``group-responses`` that the sender reads. ``principal`` is the
    client as authenticated by the sender, e.g. ``User:alice`` from the gateway. ``signature`` proves that the sender
    may vouch for client id, host and principal; without it they are only claimed.
    """

    api: str
    version: Int16
    correlation_id: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_CORRELATION_ID)]
    reply_partition: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
    body: msgspec.Raw
    client_id: str | None = None
    client_host: str | None = None
    principal: str | None = None
    signature: bytes | None = None


NO_BODY = msgspec.Raw(b"null")
"""The body of the response to a malformed request."""


class GroupChange(Message, frozen=True):
    """A change of a group, named as in the journal: the incarnation of the group, and the sequence of the entry.

    ``is_deletion``: whether the group no longer exists; then its record in ``group-directory`` is a tombstone.
    """

    incarnation: str
    sequence: Int64
    is_deletion: bool = False


class ResponseEnvelope(Message, frozen=True):
    """The value of a record of ``group-responses``; its key is the correlation id.

    ``error_code`` is the error of the request as a whole, even if the API's body repeats it on every entry or has no
    field for it. Errors of single entries are in the body only. If the request is malformed, its version is not
    supported or its sender may not send it, ``body`` is null and ``error_message`` gives the reason. ``job_epoch``
    grows with every start of the query, of this job or another one: a reader drops responses with a lower one than it
    has seen, unless it is 0.
    ``directory_change``, absent without one: the group's record in ``group-directory`` is written together with this
    response and shows this change. A client that then lists groups waits until it has read that record or a later one.
    """

    api: str
    version: Int16
    correlation_id: str
    group_id: str
    error_code: Int16
    body: msgspec.Raw
    error_message: str | None = None
    job_epoch: JobEpoch = 0
    directory_change: GroupChange | msgspec.UnsetType = msgspec.UNSET
