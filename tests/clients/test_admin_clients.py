"""The libraries' admin clients inspect and manage one group through the gateway."""

import asyncio

from aiokafka.admin import AIOKafkaAdminClient
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient
from kafka import TopicPartition as KafkaPythonPartition
from kafka.admin import MemberToRemove
from kafka.errors import NoError, NonEmptyGroupError
from kafka.structs import OffsetAndMetadata

from tests.clients.conftest import NewGroup
from tests.clients.programs.libraries import Library
from tests.clients.system import System
from tests.support.waiting import LIMIT_SECONDS, wait_until

RECORDS = 10
INSTANCE = "static instance"


def test_admin_clients_of_all_libraries_manage_a_group(system: System, new_group: NewGroup) -> None:
    group = new_group(2)
    ends = {0: RECORDS, 1: RECORDS}
    system.produce(group.topic, range(2), RECORDS)
    group.start("dynamic", Library.LIBRDKAFKA)
    group.start("static", Library.LIBRDKAFKA, INSTANCE)
    group.await_shared_by("dynamic", "static")
    group.await_consumed(ends)
    group.await_committed(ends)

    confluent = AdminClient({"bootstrap.servers": system.bootstrap_servers})
    inspect_with_librdkafka(confluent, group.group_id, group.topic)
    asyncio.run(inspect_with_aiokafka(system.bootstrap_servers, group.group_id, group.topic))
    admin = KafkaAdminClient(bootstrap_servers=system.bootstrap_servers)
    try:
        inspect_with_kafka_python(admin, group.group_id, group.topic)
        assert dict(admin.delete_groups([group.group_id])) == {group.group_id: NonEmptyGroupError.__name__}
        group.stop("dynamic")
        group.await_shared_by("static")
        group.stop("static")
        remove_member_and_offsets(admin, group.group_id, group.topic)
    finally:
        admin.close()
    assert confluent.delete_consumer_groups([group.group_id])[group.group_id].result(LIMIT_SECONDS) is None

    def is_gone() -> bool:
        listed = confluent.list_consumer_groups().result(LIMIT_SECONDS)
        return group.group_id not in {found.group_id for found in listed.valid}

    wait_until(is_gone, "the group is no longer listed")


def inspect_with_librdkafka(admin: AdminClient, group_id: str, topic: str) -> None:
    listed = admin.list_consumer_groups().result(LIMIT_SECONDS)
    assert not listed.errors
    (found,) = [each for each in listed.valid if each.group_id == group_id]
    assert (found.state.name, found.type.name, found.is_simple_consumer_group) == ("STABLE", "CLASSIC", False)

    described = admin.describe_consumer_groups([group_id])[group_id].result(LIMIT_SECONDS)
    assert (described.state.name, described.partition_assignor) == ("STABLE", "range")
    owned = [partition for member in described.members for partition in member.assignment.topic_partitions]
    assert sorted((each.topic, each.partition) for each in owned) == [(topic, 0), (topic, 1)]
    assert {member.group_instance_id for member in described.members} == {None, INSTANCE}

    requested = [ConsumerGroupTopicPartitions(group_id, [TopicPartition(topic, 0), TopicPartition(topic, 2)])]
    fetched = admin.list_consumer_group_offsets(requested)[group_id].result(LIMIT_SECONDS).topic_partitions
    assert [(each.partition, each.offset) for each in fetched] == [(0, RECORDS), (2, -1001)]


async def inspect_with_aiokafka(bootstrap_servers: str, group_id: str, topic: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap_servers)
    await admin.start()
    try:
        assert (group_id, "consumer") in [each[:2] for each in await admin.list_consumer_groups()]
        (response,) = await admin.describe_consumer_groups([group_id])
        (described,) = response.groups
        assert described[:4] == (0, group_id, "Stable", "consumer")
        offsets = await admin.list_consumer_group_offsets(group_id)
        assert {(each.topic, each.partition): found.offset for each, found in offsets.items()} == {
            (topic, 0): RECORDS,
            (topic, 1): RECORDS,
        }
    finally:
        await admin.close()


def inspect_with_kafka_python(admin: KafkaAdminClient, group_id: str, topic: str) -> None:
    (found,) = [each for each in admin.list_groups(states_filter=["Stable"]) if each["group_id"] == group_id]
    assert (found["group_state"], found["group_type"], found["protocol_type"]) == ("Stable", "classic", "consumer")
    described = admin.describe_groups([group_id])[group_id]
    assert (described["group_state"], described["protocol_data"], described["error"]) == ("Stable", "range", None)
    assert len(described["members"]) == 2
    offsets = admin.list_group_offsets([group_id])[group_id]
    assert {tuple(partition): found.offset for partition, found in offsets.items()} == {
        (topic, 0): RECORDS,
        (topic, 1): RECORDS,
    }


def remove_member_and_offsets(admin: KafkaAdminClient, group_id: str, topic: str) -> None:
    """Remove the static member, which did not leave when it was closed, then change and delete its offset."""
    first = KafkaPythonPartition(topic, 0)
    assert admin.describe_groups([group_id])[group_id]["group_state"] == "Stable"
    assert set(admin.remove_group_members(group_id, [MemberToRemove(group_instance_id=INSTANCE)]).values()) == {NoError}
    assert admin.describe_groups([group_id])[group_id]["group_state"] == "Empty"

    assert admin.alter_group_offsets(group_id, {first: OffsetAndMetadata(3, "admin", -1)}) == {first: NoError}
    kept = admin.list_group_offsets({group_id: [first]})[group_id][first]
    assert (kept.offset, kept.metadata) == (3, "admin")
    assert admin.delete_group_offsets(group_id, [first]) == {first: NoError}
    assert first not in admin.list_group_offsets([group_id])[group_id]
