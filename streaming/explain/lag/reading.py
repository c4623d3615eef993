"""Asks the brokers for what the lag of a group needs beside its journal."""

from collections.abc import Collection, Mapping

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from coordinator_logic.embedded_protocols import TopicPartition
from streaming.client.librdkafka import LibrdkafkaConfig, admin_config
from streaming.explain.lag.committed import CommittedOverTime
from streaming.explain.lag.lag import Lag, lag_of
from streaming.explain.offsets.log_positions import logs_of, offsets_at

__all__ = ["read_lag"]


def read_lag(
    config: LibrdkafkaConfig, client_id: str, committed: CommittedOverTime | None, timeout: float
) -> Lag | None:
    """The lag of a group whose entries were all added to ``committed``; without an answer, it says why it is absent.

    None, and no question, if ``committed`` is None.

    config: librdkafka's, with the brokers. timeout: how long to wait for each of some thirty answers, in seconds.
    """
    if committed is None:
        return None
    admin = AdminClient(admin_config(str(config["bootstrap.servers"]), client_id, config))
    samples = committed.samples()
    partitions = [TopicPartition(*key) for key in samples[-1].offsets] if samples else []

    def first_records(wanted: Collection[TopicPartition], time: int) -> Mapping[TopicPartition, int | None]:
        return offsets_at(admin, wanted, time, timeout)

    try:
        return lag_of(samples, logs_of(admin, partitions, timeout), first_records)
    except KafkaException as failure:
        return Lag(absent=f"the brokers do not answer: {failure.args[0].str()}")
