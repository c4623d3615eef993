"""The table of what each API answers in each state of a group, obtained by asking the logic itself.

A group is driven into each state. It has two members, a static leader and a dynamic follower, and an offset of a
topic to which it subscribes. Then each API's request, in its highest version, is sent to a copy of it: by each
member, with an unknown member id, and without a member id.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from coordinator_logic import snapshot
from coordinator_logic.apis import APIS
from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.embedded_protocols import Subscription, encode_subscription
from coordinator_logic.errors import Error
from coordinator_logic.events import Place, ReplyAddress, Request, Response
from coordinator_logic.groups.classic.records import StateChanged
from coordinator_logic.groups.classic.transitions import TRANSITIONS
from coordinator_logic.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    DropQuarantinedGroupRequest,
    FindCoordinatorRequest,
    GroupToFetch,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeavingMember,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    PartitionToCommit,
    PartitionToDelete,
    PartitionToReset,
    Protocol,
    ReadQuarantinedGroupRequest,
    RequestBody,
    ResetOffsetsRequest,
    SetGroupConfigRequest,
    SyncGroupRequest,
    TakeOverOffsetsRequest,
    TopicDescription,
    TopicsDeletedRequest,
    TopicsDescribedRequest,
    TopicToCommit,
    TopicToDelete,
    TopicToReset,
    TxnMarker,
    TxnOffsetCommitRequest,
    TxnPartitionToCommit,
    TxnTopicToCommit,
    WriteTxnMarkersRequest,
)
from coordinator_logic.states import State
from coordinator_logic.step import step

GROUP_ID, TOPIC, INSTANCE_ID = "group", "topic", "instance"
SESSION_MS = 10_000
PARKED = "parked"
REBALANCES = ", rebalances"
COLUMNS = ("absent", *(state.value for state in TRANSITIONS if state is not State.DEAD))
"""A group that does not exist, and the states of classic groups."""

LEADER, FOLLOWER, UNKNOWN, NO_MEMBER, RETURNING = (
    "the leader",
    "a follower",
    "an unknown member id",
    "no member id",
    "a static member that lost its id",
)
ANY_CLIENT = "any client"


class Sender(NamedTuple):
    """The identity with which a request is sent."""

    member_id: str = ""
    generation: int = -1
    group_instance_id: str | None = None


class DrivenGroup:
    """A group that is stepped one request at a time, a millisecond apart."""

    def __init__(self, config: CoordinatorConfig) -> None:
        self._config = config
        self._stored: bytes | None = None
        self._now = 1_000_000
        self.senders: Mapping[str, Sender] = {}

    def send(self, api: str, body: RequestBody, version: int | None = None) -> str:
        """Send a request; returns the name of the error, or :data:`PARKED`, and whether a rebalance began."""
        responses, rebalances = self._step(api, body, version)
        answered = [_error(response.body) for response in responses if response.address.requested_at == self._now]
        return (answered[0] if answered else PARKED) + REBALANCES * rebalances

    def join(self, member_id: str = "", group_instance_id: str | None = None) -> list[JoinGroupResponse]:
        """Send JoinGroup in the last version that needs no second request; every JoinGroup that is answered."""
        responses, _ = self._step("JoinGroup", _join(Sender(member_id, group_instance_id=group_instance_id)), 3)
        return [response.body for response in responses if isinstance(response.body, JoinGroupResponse)]

    def copy(self) -> "DrivenGroup":
        """A group in the same state, with Kafka's default configuration."""
        copied = DrivenGroup(CoordinatorConfig())
        copied._stored, copied._now, copied.senders = self._stored, self._now, self.senders
        return copied

    @property
    def state(self) -> str:
        """The state's name, ``absent`` for a group that does not exist."""
        return "absent" if self._stored is None else snapshot.decode(self._stored).state.value

    def _step(self, api: str, body: RequestBody, version: int | None) -> tuple[list[Response], bool]:
        self._now += 1
        version = APIS[api].max_version if version is None else version
        address = ReplyAddress(api, version, str(self._now), 0, self._now)
        request = Request(Place(self._now, 0, self._now), address, "client", "/127.0.0.1", body)
        group = None if self._stored is None else snapshot.decode(self._stored)
        result = step(GROUP_ID, group, [request], self._now, started_at=0, config=self._config)
        self._stored = None if result.group is None else snapshot.encode(result.group)
        preparing = State.PREPARING_REBALANCE.value
        records = [entry.record for entry in result.journal]
        return result.responses, any(isinstance(r, StateChanged) and r.to_state == preparing for r in records)


def _error(body: object) -> str:
    """The first error in a response, wherever its API has it; NONE if there is none."""
    return Error(next((code for code in _error_codes(body) if code != Error.NONE), Error.NONE)).name


def _error_codes(body: object) -> Iterator[int]:
    if isinstance(body, list):
        for item in body:
            yield from _error_codes(item)
    elif isinstance(body, msgspec.Struct):
        for name in body.__struct_fields__:
            value = getattr(body, name)
            if name == "error_code":
                yield value
            else:
                yield from _error_codes(value)


# ---- the states ------------------------------------------------------------------------------------------------


def group_in(column: str) -> DrivenGroup:
    """Drive a group into a state."""
    # Without the initial delay the members form their generation at once.
    group = DrivenGroup(CoordinatorConfig(group_initial_rebalance_delay_ms=0))
    leader, follower = Sender("leader", 1, INSTANCE_ID), Sender("follower", 1)
    if column != "absent":
        leader, follower = _complete_join(group)
        if column != State.COMPLETING_REBALANCE.value:
            group.send("SyncGroup", _sync(leader))
            group.send("SyncGroup", _sync(follower))
        if column == State.EMPTY.value:
            group.send("LeaveGroup", _leave(leader))
            group.send("LeaveGroup", _leave(follower))
        elif column == State.PREPARING_REBALANCE.value:
            group.join()
    group.senders = {
        LEADER: leader,
        FOLLOWER: follower,
        UNKNOWN: Sender("unknown", leader.generation),
        NO_MEMBER: Sender(),
        RETURNING: Sender(group_instance_id=INSTANCE_ID),
    }
    assert group.state == column
    return group


def _complete_join(group: DrivenGroup) -> tuple[Sender, Sender]:
    """Let leader and follower form a generation: the follower joins after the leader, which then rejoins."""
    group.send("OffsetCommit", _commit(Sender()))
    (first,) = group.join(group_instance_id=INSTANCE_ID)
    group.join()
    leader, follower = group.join(first.member_id, INSTANCE_ID)
    generation = leader.generation_id
    return Sender(leader.member_id, generation, INSTANCE_ID), Sender(follower.member_id, generation)


# ---- the requests ----------------------------------------------------------------------------------------------


def _join(sender: Sender) -> RequestBody:
    protocols = [Protocol("range", encode_subscription(Subscription([TOPIC])))]
    member_id, instance_id = sender.member_id, sender.group_instance_id
    return JoinGroupRequest(GROUP_ID, SESSION_MS, "consumer", protocols, SESSION_MS, member_id, instance_id)


def _sync(sender: Sender) -> RequestBody:
    member_id, instance_id = sender.member_id, sender.group_instance_id
    return SyncGroupRequest(GROUP_ID, sender.generation, member_id, instance_id, "consumer", "range")


def _heartbeat(sender: Sender) -> RequestBody:
    return HeartbeatRequest(GROUP_ID, sender.generation, sender.member_id, sender.group_instance_id)


def _leave(sender: Sender) -> RequestBody:
    return LeaveGroupRequest(GROUP_ID, members=[LeavingMember(sender.member_id, sender.group_instance_id)])


def _commit(sender: Sender) -> RequestBody:
    topics = [TopicToCommit(TOPIC, [PartitionToCommit(0, 1)])]
    return OffsetCommitRequest(GROUP_ID, topics, sender.generation, sender.member_id, sender.group_instance_id)


def _commit_in_transaction(sender: Sender) -> RequestBody:
    topics = [TxnTopicToCommit(TOPIC, [TxnPartitionToCommit(0, 1)])]
    identity = sender.generation, sender.member_id, sender.group_instance_id
    return TxnOffsetCommitRequest("transactional-id", GROUP_ID, 1, 0, topics, *identity)


BY_SENDER = {
    "JoinGroup": _join,
    "SyncGroup": _sync,
    "Heartbeat": _heartbeat,
    "LeaveGroup": _leave,
    "OffsetCommit": _commit,
    "TxnOffsetCommit": _commit_in_transaction,
}
BY_ANY_CLIENT: dict[str, RequestBody] = {
    "FindCoordinator": FindCoordinatorRequest(coordinator_keys=[GROUP_ID]),
    "OffsetFetch": OffsetFetchRequest(groups=[GroupToFetch(GROUP_ID)]),
    "DescribeGroups": DescribeGroupsRequest([GROUP_ID]),
    "DeleteGroups": DeleteGroupsRequest([GROUP_ID]),
    "OffsetDelete": OffsetDeleteRequest(GROUP_ID, [TopicToDelete(TOPIC, [PartitionToDelete(0)])]),
    "WriteTxnMarkers": WriteTxnMarkersRequest([TxnMarker(1, 0, True)]),
    "ConsumerGroupHeartbeat": ConsumerGroupHeartbeatRequest(
        *(GROUP_ID, "new", 0), rebalance_timeout_ms=SESSION_MS, subscribed_topic_names=[TOPIC], topic_partitions=[]
    ),
    "ConsumerGroupDescribe": ConsumerGroupDescribeRequest([GROUP_ID]),
    "TopicsDeleted": TopicsDeletedRequest([TOPIC]),
    "SetGroupConfig": SetGroupConfigRequest(GROUP_ID, {"consumer.session.timeout.ms": "60000"}),
    "TopicsDescribed": TopicsDescribedRequest([TopicDescription(TOPIC, "AAAAAAAAAAAAAAAAAAAAAQ", 1)]),
    "ReadQuarantinedGroup": ReadQuarantinedGroupRequest(),
    "ResetOffsets": ResetOffsetsRequest(GROUP_ID, [TopicToReset(TOPIC, [PartitionToReset(0, 1)])], force=True),
    "TakeOverOffsets": TakeOverOffsetsRequest(GROUP_ID, [TopicToCommit(TOPIC, [PartitionToCommit(0, 1)])]),
    "DropQuarantinedGroup": DropQuarantinedGroupRequest(),
}


# ---- the table -------------------------------------------------------------------------------------------------


def answers() -> dict[tuple[str, str], list[str]]:
    """Ask every API in every state: by API and sender, the answers in the order of :data:`COLUMNS`."""
    groups = [group_in(column) for column in COLUMNS]
    table = {}
    for api in APIS:
        for sender, bodies in _requests(api, groups).items():
            table[api, sender] = [group.copy().send(api, body) for group, body in zip(groups, bodies, strict=True)]
    return table


def _requests(api: str, groups: list[DrivenGroup]) -> dict[str, list[RequestBody]]:
    """The request of each sender, for each of the groups."""
    if api in BY_ANY_CLIENT:
        return {ANY_CLIENT: [BY_ANY_CLIENT[api]] * len(groups)}
    senders = [LEADER, FOLLOWER, UNKNOWN, NO_MEMBER, *([RETURNING] if api == "JoinGroup" else [])]
    return {sender: [BY_SENDER[api](group.senders[sender]) for group in groups] for sender in senders}


def markdown() -> str:
    """Render the table as Markdown, a row for each API and sender."""
    lines = [_row("API", "sent by", *COLUMNS), "|" + "---|" * (len(COLUMNS) + 2)]
    lines += [_row(api, sender, *cells) for (api, sender), cells in answers().items()]
    return "\n".join(lines) + "\n"


def _row(*cells: Any) -> str:
    return f"| {' | '.join(cells)} |"
