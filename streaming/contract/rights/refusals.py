"""Which errors of brokers are refusals for lack of a right, and the line that names the right."""

from confluent_kafka import KafkaError

from streaming.contract.rights.table import Kind, Operation

REFUSALS = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    }
)


def is_refusal(error: KafkaError | None) -> bool:
    """Whether brokers have refused a request because its principal lacks an ACL."""
    return error is not None and error.code() in REFUSALS


def not_allowed(operation: Operation, name: str, kind: Kind = Kind.TOPIC) -> str:
    """The line about a right that is missing. ``name`` is the resource's at the brokers."""
    return f"the brokers do not allow {operation} on {kind} {name} (see `group-coordinator acls`)"


def reason_of(error: KafkaError, operation: Operation, name: str) -> str:
    """Why brokers have not done this to a topic: the right that is missing, or the error in their words."""
    return not_allowed(operation, name) if is_refusal(error) else error.str()
