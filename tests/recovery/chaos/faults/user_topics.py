"""Faults of the topics of users."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from random import Random

from confluent_kafka import OFFSET_INVALID, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from tests.clients.live_consumer import LiveConsumer
from tests.recovery.chaos.stage import Stage
from tests.recovery.chaos.transactional import COMMON
from tests.support.topics import unique
from tests.support.waiting import LIMIT_SECONDS, wait_until

PROTOCOLS = ("classic", "consumer")
LAG_SECONDS = 2.0
"""How long a broker may take to hear of a topic."""
OF_THE_OLD_TOPIC, OF_THE_NEW_TOPIC = 100, 7
PAUSE_SECONDS = 0.5


def create_topic_again(stage: Stage, chance: Random) -> str:
    """A topic is deleted and created again, through the gateway or past it, under a group of each protocol.

    The groups have no offset of the new topic, and keep the one that they commit for it, although they may hear of the
    deletion later. Other faults may be under way: what fails is asked again.
    """
    assert stage.gateway is not None
    brokers, gateway, topic = stage.cluster.bootstrap_servers, stage.gateway.bootstrap_servers, unique("created-again")
    admin = AdminClient({"bootstrap.servers": brokers, "log_level": 0})
    is_seen = chance.random() < 1 / 2
    with _topic(admin, topic), ExitStack() as living:
        consumers = {
            protocol: living.enter_context(LiveConsumer(topic, _settings(gateway, topic, protocol)))
            for protocol in PROTOCOLS
        }
        for consumer in consumers.values():
            _commit(consumer, OF_THE_OLD_TOPIC)
        _delete(AdminClient({"bootstrap.servers": gateway, "log_level": 0}) if is_seen else admin, topic)
        time.sleep(chance.uniform(0, 2))
        _create(admin, topic)
        time.sleep(LAG_SECONDS)
        for protocol, consumer in consumers.items():
            found = _committed(consumer)
            assert found == OFFSET_INVALID, f"the {protocol} group has offset {found} of a topic that is new"
            _commit(consumer, OF_THE_NEW_TOPIC)
        time.sleep(chance.uniform(0, 2 * LAG_SECONDS))
        for protocol, consumer in consumers.items():
            found = _committed(consumer)
            assert found == OF_THE_NEW_TOPIC, f"the {protocol} group has lost the offset of the new topic: {found}"
    return f"a topic was deleted and created again, {'through' if is_seen else 'past'} the gateway"


def _settings(gateway: str, topic: str, protocol: str) -> dict[str, object]:
    group = f"{topic}-{protocol}"
    own = {"bootstrap.servers": gateway, "group.id": group, "client.id": group, "group.protocol": protocol}
    return {**COMMON, **own}


@contextmanager
def _topic(admin: AdminClient, topic: str) -> Iterator[None]:
    """A topic for as long as the block runs."""
    _create(admin, topic)
    try:
        yield
    finally:
        with suppress(KafkaException, TimeoutError):
            admin.delete_topics([topic])[topic].result(LIMIT_SECONDS)


def _create(admin: AdminClient, topic: str) -> None:
    def is_created() -> bool:
        if not _exists(admin, topic):
            admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(LIMIT_SECONDS)
        return _exists(admin, topic)

    wait_until(is_created, f"{topic} is created", ignore=(KafkaException, TimeoutError), pause=PAUSE_SECONDS)


def _delete(admin: AdminClient, topic: str) -> None:
    def is_deleted() -> bool:
        if _exists(admin, topic):
            admin.delete_topics([topic])[topic].result(LIMIT_SECONDS)
        return not _exists(admin, topic)

    wait_until(is_deleted, f"{topic} is deleted", ignore=(KafkaException, TimeoutError), pause=PAUSE_SECONDS)


def _exists(admin: AdminClient, topic: str) -> bool:
    return topic in admin.list_topics(timeout=LIMIT_SECONDS).topics


def _commit(consumer: LiveConsumer, offset: int) -> None:
    wait_until(lambda: consumer.commit(0, offset) is None, f"offset {offset} is committed", pause=PAUSE_SECONDS)


def _committed(consumer: LiveConsumer) -> int:
    """The committed offset, as soon as it is answered."""
    answers: list[int] = []

    def is_answered() -> bool:
        answers.append(consumer.committed(0))
        return True

    wait_until(is_answered, "the committed offset is answered", ignore=(KafkaException,), pause=PAUSE_SECONDS)
    return answers[-1]
