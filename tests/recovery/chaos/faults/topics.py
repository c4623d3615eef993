"""Faults of the topics: grown, deleted, made anew."""

import shutil
import time
from random import Random

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewPartitions

from streaming.job.checkpoints.checkpoint import TOPIC_FOLDER
from tests.recovery.chaos.stage import Stage
from tests.support.waiting import LIMIT_SECONDS, wait_until

MADE_ANEW = "was deleted and created again"
GROWN = "because a topic has more partitions"
END_LIMIT_SECONDS = 60.0


def grow_responses(stage: Stage, chance: Random) -> str:
    """The topic of the responses gets more partitions; the job starts its query again."""
    return _grow(stage, stage.topics.responses, "response-partitions", chance)


def grow_requests(stage: Stage, chance: Random) -> str:
    """The topic of the requests gets more partitions; the clients write to the partitions that they know."""
    return _grow(stage, stage.topics.requests, "request-partitions", chance)


def delete_directory(stage: Stage, chance: Random) -> str:
    """The topic of the directory or of the rejects is deleted: the job ends with a message, and its start makes it."""
    topic = chance.choice((stage.topics.directory, stage.topics.rejects))
    job = stage.active
    _delete(stage, topic)
    job.wait(END_LIMIT_SECONDS)
    assert any(topic in line for line in job.output), job.tail()
    stage.start_job(job)
    return f"{topic} was deleted"


def make_requests_anew(stage: Stage, chance: Random) -> str:
    """The topic of the requests is made anew: the job refuses it until the operator keeps the groups without it.

    The gateway and the job are stopped first, as the manual says. A gateway may have erased a participation whose
    outcome nobody has read yet. A killed job may have answered requests whose batch is not complete: the batch would
    run again without them.
    """
    job = stage.active
    if stage.gateway is not None:
        stage.gateway.stop()
    job.stop()
    _delete(stage, stage.topics.requests)
    time.sleep(chance.uniform(0, 1))
    job.launch()
    job.wait(END_LIMIT_SECONDS)
    assert any(MADE_ANEW in line for line in job.output), job.tail()
    shutil.rmtree(stage.checkpoint / TOPIC_FOLDER)
    stage.start_job(job)
    if stage.gateway is not None:
        stage.start_gateway()
    return f"{stage.topics.requests} was made anew, and adopted"


def _grow(stage: Stage, topic: str, option: str, chance: Random) -> str:
    admin = _admin(stage)
    job, more = stage.active, chance.randint(1, 3)
    count = len(admin.list_topics(topic, timeout=LIMIT_SECONDS).topics[topic].partitions) + more
    for each in stage.jobs:
        # The next start would compare it with the topic.
        each.options[option] = count
    admin.create_partitions([NewPartitions(topic, count)])[topic].result(LIMIT_SECONDS)
    # A query that starts again after an outage of the brokers finds the new partitions at its start.
    signs = (GROWN, f"topic {topic} has {count} partitions")
    wait_until(
        lambda: not job.is_running or any(sign in line for line in tuple(job.output) for sign in signs),
        f"the job has noticed that {topic} has more partitions",
        describe=job.tail,
    )
    return f"{topic} grew to {count} partitions"


def _delete(stage: Stage, topic: str) -> None:
    admin = _admin(stage)
    admin.delete_topics([topic])[topic].result(LIMIT_SECONDS)
    wait_until(
        lambda: topic not in admin.list_topics(timeout=LIMIT_SECONDS).topics,
        f"{topic} is deleted",
        ignore=(KafkaException,),
    )


def _admin(stage: Stage) -> AdminClient:
    return AdminClient({"bootstrap.servers": stage.cluster.bootstrap_servers, "log_level": 0})
