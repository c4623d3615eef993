"""One group as the coordinator describes it, from the answers of the step."""

from coordinator_logic.embedded_protocols import Assignment, TopicPartition, encode_assignment
from coordinator_logic.errors import Error
from coordinator_logic.messages import DescribedConsumerGroup, DescribedGroup, DescribedMember
from streaming.explain.live.group import description, group_now
from streaming.explain.live.group_types import Holder, MemberNow
from streaming.explain.live.partitions import NO_PARTITION, PartitionNow
from streaming.explain.offsets.plan import Position
from tests.logic.groups.consumer.driver import DrivenConsumers

ASSIGNED = encode_assignment(
    Assignment([TopicPartition("orders", 1), TopicPartition("orders", 0), TopicPartition("audit", 0)])
)


def classic(assignment: bytes, protocol_type: str = "consumer", instance_id: str | None = None) -> DescribedGroup:
    member = DescribedMember("reader-1", instance_id, "reader", "/10.0.3.7", b"", assignment)
    return DescribedGroup(
        "billing", group_state="Stable", protocol_type=protocol_type, protocol_data="range", members=[member]
    )


def test_a_classic_group_has_its_members_with_their_partitions_by_topic() -> None:
    group = group_now(classic(ASSIGNED, instance_id="static-7"))
    assert (group.state, group.group_type, group.protocol, group.error) == ("Stable", "classic", "consumer, range", "")
    assert group.members == [MemberNow("reader-1", "static-7", "reader", "/10.0.3.7", "audit: 0\norders: 0, 1")]


def test_an_assignment_that_is_not_a_consumers_is_told_by_its_size() -> None:
    told = [group_now(one).members[0].assignment for one in (classic(b""), classic(b"xyz"), classic(b"xyz", "p"))]
    assert told == ["-", "3 bytes, unreadable", "3 bytes"]


def test_a_consumer_group_has_its_members_with_their_partitions_by_topic() -> None:
    driven = DrivenConsumers()
    driven.enter("newer", "orders", topics={"orders": 2})
    driven.beat("newer", 1, owned={})
    group = group_now(driven.describe_consumers())
    assert (group.state, group.group_type, group.error) == ("Stable", "consumer", "")
    (member,) = group.members
    assert (member.member_id, member.assignment) == ("newer", "orders: 0, 1")


def test_an_error_is_told_by_its_name() -> None:
    code = Error.GROUP_ID_NOT_FOUND
    for group in (group_now(DescribedGroup("billing", code)), group_now(DescribedConsumerGroup("b", code))):
        assert description(group, []) == "GROUP_ID_NOT_FOUND"


def test_the_description_has_members_and_offsets() -> None:
    group = group_now(classic(ASSIGNED))
    first, second = TopicPartition("orders", 0), TopicPartition("orders", 10)
    partitions = [
        PartitionNow(first, Position(42), 50, Holder(first, "reader-1", "reader", "/10.0.3.7")),
        PartitionNow(second, None, None, None, NO_PARTITION),
    ]
    assert description(group, partitions).splitlines() == [
        "billing: Stable (consumer, range), 1 member",
        "",
        "reader-1 (reader at /10.0.3.7)",
        "    audit: 0",
        "    orders: 0, 1",
        "",
        "TOPIC   PARTITION  OFFSET  END  LAG  OWNER",
        "orders          0      42   50    8  reader-1 at /10.0.3.7",
        "orders         10       -    -    -  -                      no such partition",
    ]
    assert description(group, []).endswith("no committed offsets, and no member has a partition")
