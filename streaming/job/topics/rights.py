"""What the job may not do at the brokers, as lines."""

from confluent_kafka.admin import AdminClient

from streaming.contract.rights.check import missing_rights
from streaming.contract.rights.refusals import not_allowed
from streaming.contract.rights.table import ROLES
from streaming.contract.topics import TopicNames
from streaming.job.topics.inspection import ADMIN_LIMIT_SECONDS


def missing_job_rights(admin: AdminClient, names: TopicNames, limit_seconds: float = ADMIN_LIMIT_SECONDS) -> list[str]:
    """A line for each right to the coordinator's existing topics that the job lacks. Raises KafkaException."""
    missing = missing_rights(admin, ROLES["job"].rights, names, limit_seconds)
    return [not_allowed(right.operation, right.named(names), right.kind) for right in missing]
