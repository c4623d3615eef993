"""The rights that each role needs at brokers that deny by default, each with what it is for.

Brokers imply Describe by Read and Write, and DescribeConfigs by nothing that a role has: the table names what is needed
and nothing that another right of the same role implies.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from streaming.contract.topics import TopicNames


class Kind(StrEnum):
    """A type of resource, in the words of this project's documents."""

    TOPIC = "topic"
    GROUP = "group"
    TRANSACTIONAL_ID = "transactional id"


class Operation(StrEnum):
    """An operation, under the name that Kafka's tools take."""

    READ = "Read"
    WRITE = "Write"
    CREATE = "Create"
    DESCRIBE = "Describe"
    DESCRIBE_CONFIGS = "DescribeConfigs"
    DELETE = "Delete"
    ALTER_CONFIGS = "AlterConfigs"
    CLUSTER_ACTION = "ClusterAction"


OF_USERS = "*"
"""The name of a right to the users' own topics, groups or transactional ids, as opposed to the coordinator's."""


@dataclass(frozen=True)
class Right:
    """One operation on one resource.

    Attributes:
        kind: The type of the resource.
        name: Its name without the topic prefix, or :data:`OF_USERS`.
        operation: What may be done.
        purpose: What fails without it.
    """

    kind: Kind
    name: str
    operation: Operation
    purpose: str

    @property
    def is_of_users(self) -> bool:
        """Whether it is one to the users' own resources."""
        return self.name == OF_USERS

    def named(self, names: TopicNames) -> str:
        """The resource's name at the brokers."""
        return self.name if self.is_of_users else f"{names.prefix}{self.name}"


@dataclass(frozen=True)
class Role:
    """A process or a person with a principal of its own.

    Attributes:
        what: Who has it.
        rights: All that it needs.
        takes_every: Whether it needs its rights of :data:`OF_USERS` for every name, unless it is narrowed.
    """

    what: str
    rights: tuple[Right, ...]
    takes_every: bool = False


_CREATED = {
    "group-requests": (
        (Operation.READ, "read requests"),
        (Operation.WRITE, "append wake events, without which no deadline would be kept"),
    ),
    "group-responses": ((Operation.WRITE, "answer requests"),),
    "group-journal": (
        (Operation.READ, "take over from a job that was killed"),
        (Operation.WRITE, "journal changes of groups"),
    ),
    "group-directory": (
        (Operation.READ, "count groups in the metrics"),
        (Operation.WRITE, "list groups"),
    ),
    "group-rejects": ((Operation.WRITE, "report requests that cannot be read"),),
    "group-transactions": ((Operation.DESCRIBE, "check the topic of the gateways' transactions"),),
    "group-coordinators": (
        (Operation.READ, "see whether another job is active"),
        (Operation.WRITE, "announce that it is the active job"),
    ),
}
"""By topic of the job, what it does with it beside creating it and checking its settings."""


def _topic(name: str, operation: Operation, purpose: str) -> Right:
    return Right(Kind.TOPIC, name, operation, purpose)


def _job_rights() -> tuple[Right, ...]:
    rights = []
    for name, uses in _CREATED.items():
        rights += [
            _topic(name, Operation.CREATE, "create the topic; not needed if someone else does"),
            _topic(name, Operation.DESCRIBE_CONFIGS, "check the topic's settings"),
            *(_topic(name, *use) for use in uses),
        ]
    claim = Right(Kind.TRANSACTIONAL_ID, "group-coordinators", Operation.WRITE, "become the active job")
    return (*rights, claim)


_ASKS = (
    _topic("group-requests", Operation.WRITE, "send requests"),
    _topic("group-responses", Operation.READ, "receive answers"),
    _topic("group-coordinators", Operation.READ, "drop answers of a job that another one has overtaken"),
)
_LISTS = _topic("group-directory", Operation.READ, "list groups")
_HISTORY = _topic("group-journal", Operation.READ, "tell what happened to groups")
_REFUSALS = _topic("group-requests", Operation.READ, "tell which requests were refused, and replay them")

_JOB = Role("the job, active or standing by", _job_rights())

ROLES: Mapping[str, Role] = {
    "job": _JOB,
    "standby": _JOB,
    "gateway": Role(
        "a gateway",
        (
            *_ASKS,
            _LISTS,
            _topic("group-journal", Operation.READ, "take over groups of the brokers' coordinator"),
            _topic("group-transactions", Operation.READ, "end transactions that another gateway has begun"),
            _topic("group-transactions", Operation.WRITE, "note the groups of a transaction"),
            _topic(OF_USERS, Operation.DESCRIBE, "resolve patterns, and see which topics have grown or gone"),
            # Only where the right to all topics is narrowed.
            _topic("group-rejects", Operation.DESCRIBE, "know the topic by its id, for which clients may ask"),
            _topic("group-rebalances", Operation.DESCRIBE, "know the topic by its id, for which clients may ask"),
            Right(Kind.TRANSACTIONAL_ID, OF_USERS, Operation.WRITE, "add groups to transactions of clients"),
            Right(Kind.GROUP, OF_USERS, Operation.READ, "add groups to transactions, and take over their offsets"),
        ),
        takes_every=True,
    ),
    "service": Role(
        "a service with the Python client on the topics",
        (*_ASKS, _LISTS, _topic(OF_USERS, Operation.READ, "consume its topics")),
    ),
    "client": Role(
        "a Kafka client of the gateway",
        (
            _topic(OF_USERS, Operation.READ, "consume its topics"),
            Right(Kind.GROUP, OF_USERS, Operation.READ, "join its groups and commit"),
            Right(Kind.TRANSACTIONAL_ID, OF_USERS, Operation.WRITE, "commit offsets in transactions"),
        ),
    ),
    "reader": Role("commands that only read topics: explain, events, replay, groups --at", (_HISTORY, _REFUSALS)),
    "operator": Role(
        "all commands for groups and offsets",
        (*_ASKS, _LISTS, _HISTORY, _REFUSALS, _topic(OF_USERS, Operation.DESCRIBE, "show lags, and reset offsets")),
    ),
    "publisher": Role(
        "events --publish",
        (
            _HISTORY,
            _topic("group-rebalances", Operation.CREATE, "create the topic; not needed if someone else does"),
            _topic("group-rebalances", Operation.READ, "go on after the last rebalance that was published"),
            _topic("group-rebalances", Operation.WRITE, "publish rebalances"),
            Right(Kind.TRANSACTIONAL_ID, "group-rebalances", Operation.WRITE, "publish each rebalance once"),
        ),
    ),
    "recovery": Role(
        "checkpoint rebuild, restore and verify with -b",
        (
            _topic("group-requests", Operation.READ, "find where the job went on"),
            _topic("group-journal", Operation.READ, "rebuild groups"),
            _topic("group-directory", Operation.READ, "compare the rebuilt groups with their last state"),
            _topic("group-coordinators", Operation.READ, "see whether a job is active"),
        ),
    ),
}
