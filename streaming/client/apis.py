"""The requests that the clients send: name, version and types of each API, and what an answer is."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from coordinator_logic import messages
from coordinator_logic.errors import Error
from streaming.client.errors import coordinator_error, error_of

RequestT = TypeVar("RequestT", bound=messages.Message)
ResponseT = TypeVar("ResponseT", bound=messages.Message)


@dataclass(frozen=True)
class Api(Generic[RequestT, ResponseT]):
    """One API in the version that this client speaks."""

    name: str
    version: int
    request: type[RequestT]
    response: type[ResponseT]


@dataclass(frozen=True)
class Answer(Generic[ResponseT]):
    """The coordinator's answer to one request, error answers included.

    ``body`` is None when the coordinator could not make sense of the request; ``message`` then says why.
    """

    api: str
    group_id: str
    error_code: int
    message: str | None
    body: ResponseT | None

    @property
    def error(self) -> Error:
        """The error of the request as a whole."""
        return error_of(self.error_code)

    def unwrap(self) -> ResponseT:
        """The body of a successful answer; raises :class:`~streaming.client.errors.CoordinatorError` otherwise."""
        said = f"{self.api} for group {self.group_id!r}"
        if self.error_code != Error.NONE:
            failure = coordinator_error(self.error_code, f"{said}: {self.message}" if self.message else said)
            failure.body = self.body
            raise failure
        if self.body is None:
            raise coordinator_error(Error.UNKNOWN_SERVER_ERROR, f"{said} was answered without a body")
        return self.body


FIND_COORDINATOR = Api("FindCoordinator", 6, messages.FindCoordinatorRequest, messages.FindCoordinatorResponse)
JOIN_GROUP = Api("JoinGroup", 9, messages.JoinGroupRequest, messages.JoinGroupResponse)
SYNC_GROUP = Api("SyncGroup", 5, messages.SyncGroupRequest, messages.SyncGroupResponse)
HEARTBEAT = Api("Heartbeat", 4, messages.HeartbeatRequest, messages.HeartbeatResponse)
LEAVE_GROUP = Api("LeaveGroup", 5, messages.LeaveGroupRequest, messages.LeaveGroupResponse)
OFFSET_COMMIT = Api("OffsetCommit", 9, messages.OffsetCommitRequest, messages.OffsetCommitResponse)
OFFSET_FETCH = Api("OffsetFetch", 9, messages.OffsetFetchRequest, messages.OffsetFetchResponse)
DESCRIBE_GROUPS = Api("DescribeGroups", 6, messages.DescribeGroupsRequest, messages.DescribeGroupsResponse)
DELETE_GROUPS = Api("DeleteGroups", 2, messages.DeleteGroupsRequest, messages.DeleteGroupsResponse)
OFFSET_DELETE = Api("OffsetDelete", 0, messages.OffsetDeleteRequest, messages.OffsetDeleteResponse)
TOPICS_DELETED = Api("TopicsDeleted", 0, messages.TopicsDeletedRequest, messages.TopicsDeletedResponse)
