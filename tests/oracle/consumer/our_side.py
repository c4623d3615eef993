"""Our side of a script: the same commands to the logic, with answers of the same shape as the judge's."""

from typing import Any

import msgspec

from coordinator_logic import snapshot
from coordinator_logic.apis import APIS
from coordinator_logic.config import LOGIC_VERSION, CoordinatorConfig
from coordinator_logic.embedded_protocols import decode_assignment
from coordinator_logic.events import Place, ReplyAddress, Request, Response
from coordinator_logic.group import Group
from coordinator_logic.groups.consumer.requests.consumer_group_describe import described
from coordinator_logic.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribedAssignment,
    DescribedConsumer,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    LeavingMember,
    Message,
    OffsetCommitRequest,
    PartitionToCommit,
    SyncGroupRequest,
    TopicDescription,
    TopicsDeletedRequest,
    TopicsDescribedRequest,
    TopicToCommit,
    TxnOffsetCommitRequest,
    TxnPartitionToCommit,
    TxnTopicToCommit,
)
from coordinator_logic.step import step
from tests.oracle.consumer.judge import Command
from tests.support.parts import consumer_group, consumer_part

GROUP_ID = "g"
DESCRIBE_VERSION = 1


class OurSide:
    """A group that is stepped with each command, in fake time.

    ``topics`` are the topics of the cluster, by name. Whoever sends a subscription describes them all.
    """

    def __init__(self, begin: Command) -> None:
        keys = {"group.consumer.assignors": "range", "expiry.allowance.ms": 0, **begin["config"]}
        never = 10 * 365 * 24 * 3_600_000
        keys |= {"offsets.retention.check.interval.ms": never, "logic.version": LOGIC_VERSION}
        # The manager has one heartbeat interval for all times.
        keys |= {"group.consumer.reconciling.heartbeat.interval.ms": 2**31 - 1}
        self._config = msgspec.convert(keys, CoordinatorConfig)
        self._stored: bytes | None = None
        self._now, self._offset = 1_000, 0
        self.topics = {each["name"]: msgspec.convert(each, TopicDescription) for each in begin["described"]}

    @property
    def group(self) -> Group | None:
        """A copy of the group."""
        return None if self._stored is None else snapshot.decode(self._stored)

    @property
    def has_consumers(self) -> bool:
        """Whether the group is a consumer group with members: other classic requests are compared with a broker's."""
        group = self.group
        return group is not None and consumer_part(group) is not None and bool(consumer_group(group).members)

    def answer(self, command: Command) -> dict[str, Any]:
        """Carry out a command other than the first."""
        self._now += 1
        self._step([])
        result: dict[str, Any] = {"error": 0}
        match command["op"]:
            case "beat":
                result = self._beat(command)
            case "join" | "sync" | "heartbeat" if not self.has_consumers:
                result["skipped"] = True
            case "join":
                result = self._join(command["body"])
            case "sync":
                result = self._sync(command["body"])
            case "heartbeat":
                body = msgspec.convert({**command["body"], "groupId": GROUP_ID}, HeartbeatRequest)
                heard: Any = self._send("Heartbeat", body, 4)
                result["error"] = heard.error_code
            case "leave":
                leaving = [msgspec.convert(member, LeavingMember) for member in command["members"]]
                left: Any = self._send("LeaveGroup", LeaveGroupRequest(GROUP_ID, members=leaving), 5)
                result["errors"] = [entry.error_code for entry in left.members]
            case "sleep":
                self._now += command["ms"]
                self._step([])
            case "topics":
                self._change_topics(command)
            case "commit":
                result["error"] = 69 if self.group is None else self._commit(command)
        return {**result, "group": self._describe()}

    def _beat(self, command: Command) -> dict[str, Any]:
        body = msgspec.convert({**command["body"], "groupId": GROUP_ID}, ConsumerGroupHeartbeatRequest)
        if body.subscribed_topic_names is not None or body.subscribed_topic_regex is not None:
            body = msgspec.structs.replace(body, topics=list(self.topics.values()))
        answer = self._send("ConsumerGroupHeartbeat", body, command["version"])
        assert isinstance(answer, ConsumerGroupHeartbeatResponse)
        if answer.error_code:
            return {"error": answer.error_code}
        listed = None if answer.assignment is None else answer.assignment.topic_partitions
        assignment = None if listed is None else {each.topic_id: each.partitions for each in listed}
        return {
            "error": 0,
            "memberId": answer.member_id,
            "memberEpoch": answer.member_epoch,
            "assignment": assignment,
        }

    def _join(self, fields: dict[str, Any]) -> dict[str, Any]:
        body = msgspec.convert({**fields, "groupId": GROUP_ID}, JoinGroupRequest)
        body = msgspec.structs.replace(body, topics=list(self.topics.values()))
        answer: Any = self._send("JoinGroup", body, 9)
        if answer is None:
            return {"error": 0, "parked": True}
        if answer.error_code:
            return {"error": answer.error_code}
        found = {"memberId": answer.member_id, "generation": answer.generation_id, "protocol": answer.protocol_name}
        return {"error": 0, **found}

    def _sync(self, fields: dict[str, Any]) -> dict[str, Any]:
        body = msgspec.convert({**fields, "groupId": GROUP_ID}, SyncGroupRequest)
        answer: Any = self._send("SyncGroup", body, 5)
        if answer is None:
            return {"error": 0, "parked": True}
        if answer.error_code:
            return {"error": answer.error_code}
        return {"error": 0, "partitions": sorted(map(str, decode_assignment(answer.assignment).partitions))}

    def _change_topics(self, command: Command) -> None:
        deleted = {
            name: [topic.topic_id] for name, topic in self.topics.items() if topic.topic_id in command["deleted"]
        }
        for name in deleted:
            del self.topics[name]
        self.topics |= {each["name"]: msgspec.convert(each, TopicDescription) for each in command["described"]}
        if deleted:
            self._send("TopicsDeleted", TopicsDeletedRequest(list(deleted), deleted), 0)
        self._send("TopicsDescribed", TopicsDescribedRequest(list(self.topics.values())), 0)

    def _commit(self, command: Command) -> int:
        topic, partition = command["topic"], command["partition"]
        member_id, epoch = command["memberId"], command["epoch"]
        body: Message
        if command["isTransactional"]:
            entries = [TxnTopicToCommit(topic, [TxnPartitionToCommit(partition, 1)])]
            body = TxnOffsetCommitRequest("transactional-id", GROUP_ID, 1, 0, entries, epoch, member_id)
            answer: Any = self._send("TxnOffsetCommit", body, 5)
        else:
            topics = [TopicToCommit(topic, [PartitionToCommit(partition, 1)])]
            body = OffsetCommitRequest(GROUP_ID, topics, epoch, member_id)
            answer = self._send("OffsetCommit", body, command["version"])
        error: int = answer.topics[0].partitions[0].error_code
        return error

    def _send(self, api: str, body: Message, version: int) -> Any:
        """Send a request; None if it is parked."""
        self._offset += 1
        assert version in APIS[api].versions
        address = ReplyAddress(api, version, str(self._offset), 0, self._now)
        place = Place(self._now, 0, self._offset)
        responses = self._step([Request(place, address, "client", "/127.0.0.1", body)])
        return next((each.body for each in responses if each.address == address), None)

    def _step(self, requests: list[Request]) -> list[Response]:
        result = step(GROUP_ID, self.group, requests, self._now, started_at=0, config=self._config)
        self._stored = None if result.group is None else snapshot.encode(result.group)
        return result.responses

    def _describe(self) -> dict[str, Any]:
        group = self.group
        if group is None or consumer_part(group) is None:
            return {"error": 69}
        answer = described(GROUP_ID, consumer_group(group), self._config, DESCRIBE_VERSION)
        return {
            "error": 0,
            "state": answer.group_state,
            "epoch": answer.group_epoch,
            "targetEpoch": answer.assignment_epoch,
            "members": [_member(member) for member in sorted(answer.members, key=lambda member: member.member_id)],
        }


def _member(member: DescribedConsumer) -> dict[str, Any]:
    return {
        "memberId": member.member_id,
        "instanceId": member.instance_id,
        "epoch": member.member_epoch,
        "regex": member.subscribed_topic_regex,
        "type": member.member_type,
        "names": member.subscribed_topic_names,
        "assignment": _partitions(member.assignment),
        "target": _partitions(member.target_assignment),
    }


def _partitions(assignment: DescribedAssignment) -> dict[str, list[int]]:
    return {each.topic_id: each.partitions for each in assignment.topic_partitions if each.partitions}
