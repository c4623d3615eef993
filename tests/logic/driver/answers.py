"""The answers of a driven group, and what a client learns from them."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from coordinator_logic.embedded_protocols import Subscription, encode_subscription
from coordinator_logic.errors import Error
from coordinator_logic.events import Request, Response
from coordinator_logic.messages import (
    CommittedPartition,
    DeletedGroup,
    DeleteGroupsResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupResponse,
    OffsetCommitResponse,
    Protocol,
    ResponseBody,
    TxnOffsetCommitResponse,
)

BodyT = TypeVar("BodyT", bound=ResponseBody)


class Answer(Generic[BodyT]):
    """The answer to a request; ``response`` is None while the request is parked."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.response: Response | None = None

    @property
    def parked(self) -> bool:
        """Whether the request has not been answered."""
        return self.response is None

    @property
    def body(self) -> BodyT:
        """The response's body."""
        assert self.response is not None, f"{self.request.address.api} has not been answered"
        return self.response.body  # type: ignore[return-value]

    @property
    def error(self) -> Error:
        """The error of the whole request."""
        assert self.response is not None, f"{self.request.address.api} has not been answered"
        return Error(self.response.error_code)


@dataclass(frozen=True)
class Joined:
    """A member as its client knows it."""

    member_id: str
    generation_id: int = -1
    group_instance_id: str | None = None
    leader: str = ""

    @property
    def leads(self) -> bool:
        """Whether its JoinGroup response named it as the leader."""
        return self.member_id == self.leader


def joined(answer: Answer[JoinGroupResponse]) -> Joined:
    """The member that a successful JoinGroup created."""
    assert answer.error is Error.NONE, answer.error
    body, request = answer.body, answer.request.body
    assert isinstance(request, JoinGroupRequest)
    return Joined(body.member_id, body.generation_id, request.group_instance_id, body.leader)


def listing(*names: str, metadata: bytes = b"subscription") -> list[Protocol]:
    """A member's protocols in order of preference."""
    return [Protocol(name, metadata) for name in names]


def reading(*topics: str, protocol: str = "range") -> list[Protocol]:
    """The protocols of a consumer that subscribes to these topics."""
    return listing(protocol, metadata=encode_subscription(Subscription(list(topics))))


def assignment_of(member_id: str) -> bytes:
    """The assignment that leaders in these tests give a member."""
    return f"partitions of {member_id}".encode()


def errors_of(answer: Answer[OffsetCommitResponse] | Answer[TxnOffsetCommitResponse]) -> list[Error]:
    """The error of each partition of a commit."""
    partitions: list[CommittedPartition] = [p for topic in answer.body.topics for p in topic.partitions]
    return [Error(partition.error_code) for partition in partitions]


def leave_errors(answer: Answer[LeaveGroupResponse]) -> list[Error]:
    """The error of each entry of a LeaveGroup."""
    return [Error(entry.error_code) for entry in answer.body.members]


def delete_errors(answer: Answer[DeleteGroupsResponse]) -> list[DeletedGroup]:
    """The entries of a DeleteGroups."""
    return answer.body.results
