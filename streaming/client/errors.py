"""What can go wrong for a client, under Kafka's names.

Everything raised on purpose is a :class:`CoordinatorError`: its ``error`` is Kafka's code, ``retriable`` says
whether the same request may be sent again as it is. The errors that callers treat differently from each other
have classes of their own, so that ``except`` can name them.
"""

from typing import ClassVar

from coordinator_logic.errors import Error
from coordinator_logic.messages import Message


class CoordinatorError(Exception):
    """An error answer of the coordinator, or none in time.

    ``message`` says what was asked, and of whom. ``body`` is the answer's, where there was one: that of
    MEMBER_ID_REQUIRED holds the member id.
    """

    def __init__(self, error: Error, message: str) -> None:
        super().__init__(f"{error.name}: {message}")
        self.error = error
        self.message = message
        self.body: Message | None = None

    @property
    def retriable(self) -> bool:
        """Whether the same request may be sent again as it is (Kafka's classification)."""
        return self.error.retriable


class _Named(CoordinatorError):
    """Base of the errors that stand for one code."""

    code: ClassVar[Error]

    def __init__(self, message: str) -> None:
        super().__init__(self.code, message)


class RequestTimedOut(_Named, TimeoutError):
    """No answer came in time. The request may be in the log all the same, and be carried out later."""

    code = Error.REQUEST_TIMED_OUT


class Unanswered(RequestTimedOut):
    """No answer came in time, but the request is in the log and will be carried out."""


class RequestTooLarge(CoordinatorError):
    """The request does not fit into the request topic, and never will."""

    def __init__(self, message: str) -> None:
        super().__init__(Error.UNKNOWN_SERVER_ERROR, message)


class CoordinatorNotAvailable(_Named):
    """The topics or the broker are not there, or the coordinator says that it cannot serve the group."""

    code = Error.COORDINATOR_NOT_AVAILABLE


class IllegalGeneration(_Named):
    """The group has moved on to another generation."""

    code = Error.ILLEGAL_GENERATION


class UnknownMemberId(_Named):
    """The coordinator does not know this member (any more)."""

    code = Error.UNKNOWN_MEMBER_ID


class RebalanceInProgress(_Named):
    """The group is rebalancing: its members must join again."""

    code = Error.REBALANCE_IN_PROGRESS


class MemberIdRequired(_Named):
    """Join again with the member id that came with the answer (KIP-394)."""

    code = Error.MEMBER_ID_REQUIRED


class FencedInstanceId(_Named):
    """Another process has joined with the same ``group.instance.id``; this one must stop (KIP-345)."""

    code = Error.FENCED_INSTANCE_ID


class GroupIdNotFound(_Named):
    """There is no such group."""

    code = Error.GROUP_ID_NOT_FOUND


class NonEmptyGroup(_Named):
    """The group has members, and so cannot be deleted."""

    code = Error.NON_EMPTY_GROUP


class CommitFailed(CoordinatorError):
    """The commit cannot succeed any more: the group has given this member's partitions to others.

    ``error`` is what the coordinator said. What was processed since the last commit will be processed again.
    """


class NoOffsetForPartition(Exception):
    """A partition has no committed offset, or one that the log no longer has, and no reset is wanted."""


_BY_CODE: dict[Error, type[_Named]] = {named.code: named for named in _Named.__subclasses__()}


def error_of(code: int) -> Error:
    """The error with that number; UNKNOWN_SERVER_ERROR for a number that this client does not know."""
    try:
        return Error(code)
    except ValueError:
        return Error.UNKNOWN_SERVER_ERROR


def coordinator_error(code: int, message: str) -> CoordinatorError:
    """The exception for an error code: its own class where there is one."""
    error = error_of(code)
    if error != code:
        message = f"{message} (error code {code})"
    named = _BY_CODE.get(error)
    return CoordinatorError(error, message) if named is None else named(message)
