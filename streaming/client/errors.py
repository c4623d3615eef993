"""The exceptions of the clients, under Kafka's names.

Every error of the coordinator is a :class:`CoordinatorError` with Kafka's error code. Errors that callers handle in
different ways have classes of their own.
"""

from typing import ClassVar

from coordinator_logic.errors import Error
from coordinator_logic.messages import Message


class CoordinatorError(Exception):
    """The coordinator answered with an error, or did not answer in time.

    error: Kafka's error. message: the request that failed, and the reason if one is known.
    body: the body of the error answer, if it has one: that of MEMBER_ID_REQUIRED has the member id.
    group_id, reason: the group of the request that the coordinator refused, and its explanation, if it gives one.
    """

    def __init__(self, error: Error, message: str) -> None:
        super().__init__(f"{error.name}: {message}")
        self.error = error
        self.message = message
        self.body: Message | None = None
        self.group_id: str | None = None
        self.reason: str | None = None

    @property
    def retriable(self) -> bool:
        """Whether the same request may succeed when it is sent again (Kafka's classification)."""
        return self.error.retriable


class _ErrorWithOwnClass(CoordinatorError):
    """Base of the exceptions that belong to exactly one error code."""

    code: ClassVar[Error]

    def __init__(self, message: str) -> None:
        super().__init__(self.code, message)


class RequestTimedOut(_ErrorWithOwnClass, TimeoutError):
    """No answer came in time. The coordinator executes the request if it is in the log, or is still appended."""

    code = Error.REQUEST_TIMED_OUT


class ResponseTimedOut(RequestTimedOut):
    """No answer came in time, but the request is in the log: the coordinator will execute it."""


class RequestTooLarge(CoordinatorError):
    """The request is larger than the request topic allows; a retry cannot succeed."""

    def __init__(self, message: str) -> None:
        super().__init__(Error.UNKNOWN_SERVER_ERROR, message)


class CoordinatorNotAvailable(_ErrorWithOwnClass):
    """A topic of the coordinator does not exist, no broker answers, or the coordinator cannot serve the group."""

    code = Error.COORDINATOR_NOT_AVAILABLE


class TopicNotFound(CoordinatorNotAvailable):
    """A topic of the coordinator does not exist."""


class NotAuthorized(CoordinatorNotAvailable):
    """The brokers refuse what this client needs, for lack of an ACL; the message names it."""


class IllegalGeneration(_ErrorWithOwnClass):
    """The request names a generation that is not the group's current one."""

    code = Error.ILLEGAL_GENERATION


class UnknownMemberId(_ErrorWithOwnClass):
    """The group has no member with this member id."""

    code = Error.UNKNOWN_MEMBER_ID


class RebalanceInProgress(_ErrorWithOwnClass):
    """The group is rebalancing: its members must rejoin."""

    code = Error.REBALANCE_IN_PROGRESS


class MemberIdRequired(_ErrorWithOwnClass):
    """The member must join again with the member id from the answer's body (KIP-394)."""

    code = Error.MEMBER_ID_REQUIRED


class FencedInstanceId(_ErrorWithOwnClass):
    """Another process has joined with the same ``group.instance.id``; this one must stop (KIP-345)."""

    code = Error.FENCED_INSTANCE_ID


class UnreleasedInstanceId(_ErrorWithOwnClass):
    """Another process uses this ``group.instance.id``, or has ended without leaving and its session goes on."""

    code = Error.UNRELEASED_INSTANCE_ID


class GroupIdNotFound(_ErrorWithOwnClass):
    """The group does not exist."""

    code = Error.GROUP_ID_NOT_FOUND


class NonEmptyGroup(_ErrorWithOwnClass):
    """The group has members, so neither it nor the offsets that they use can be deleted."""

    code = Error.NON_EMPTY_GROUP


class CommitFailed(CoordinatorError):
    """The member has left the group or was removed from it, so the commit cannot succeed.

    ``error`` is the coordinator's error. The new owners process the records since the last commit again.
    """


class NoOffsetForPartition(Exception):
    """A partition has no committed offset, or one outside the log, and ``auto_offset_reset`` is ``none``."""


_BY_CODE: dict[Error, type[_ErrorWithOwnClass]] = {named.code: named for named in _ErrorWithOwnClass.__subclasses__()}


def error_of(code: int) -> Error:
    """The error with this code; UNKNOWN_SERVER_ERROR for a code that this client does not know."""
    try:
        return Error(code)
    except ValueError:
        return Error.UNKNOWN_SERVER_ERROR


def coordinator_error(code: int, message: str) -> CoordinatorError:
    """The exception for an error code, of the code's own class if it has one."""
    error = error_of(code)
    if error != code:
        message = f"{message} (error code {code})"
    named = _BY_CODE.get(error)
    return CoordinatorError(error, message) if named is None else named(message)
