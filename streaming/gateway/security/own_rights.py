"""What the gateway itself may not do at the brokers, as lines in its log."""

import logging

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from streaming.client.librdkafka import LibrdkafkaConfig, admin_config
from streaming.contract.rights.check import missing_rights
from streaming.contract.rights.refusals import not_allowed
from streaming.contract.rights.table import ROLES
from streaming.contract.topics import TopicNames

log = logging.getLogger(__name__)

LIMIT_SECONDS = 3.0


def warn_of_missing_rights(bootstrap_servers: str, client_id: str, config: LibrdkafkaConfig, names: TopicNames) -> None:
    """Log a warning for each right to the coordinator's topics that the gateway's principal lacks."""
    admin = AdminClient(admin_config(bootstrap_servers, client_id, config))
    try:
        for right in missing_rights(admin, ROLES["gateway"].rights, names, LIMIT_SECONDS):
            log.warning("the gateway cannot %s: %s", right.purpose, not_allowed(right.operation, right.named(names)))
    except KafkaException as failure:
        log.debug("the rights of the gateway are not known: %s", failure)
