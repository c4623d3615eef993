"""What the gateway does with each API of Kafka: it serves it, passes it on, or refuses it. All others are refused.

The tables hold every API that kio knows. An API of a newer broker may belong to a group protocol that is not known
here; if it was passed on, the broker's own coordinator would answer it. So it is refused until the tables name it.
"""

from collections.abc import Iterable, Mapping
from enum import Enum, auto
from typing import NamedTuple

from coordinator_logic import apis
from streaming.gateway.wire.api_keys import api_keys


class Treatment(Enum):
    """Who answers the requests of an API."""

    SERVED = auto()
    """A handler of the gateway; without one, the API is not offered."""
    RELAYED = auto()
    """A handler of the gateway, which sends the request to the broker too; without one, the broker."""
    ANSWERED = auto()
    """The proxy decodes each request, and answers it or sends it to the broker."""
    PASSED = auto()
    """The broker."""
    REFUSED = auto()
    """Nobody: the API is not offered."""


class ApiPolicy(NamedTuple):
    """The treatment of an API and its reason."""

    treatment: Treatment
    reason: str


ANSWERED = {
    "the gateway offers what it can answer or pass on": ("ApiVersions",),
    "the gateway's listeners are the coordinators of groups, those of the brokers the coordinators of transactions": (
        "FindCoordinator",
    ),
    "the broker authenticates, and the gateway learns the principal": ("SaslHandshake", "SaslAuthenticate"),
}

PASSED = {
    "records are the brokers'": ("Produce", "Fetch", "ListOffsets", "DeleteRecords", "OffsetForLeaderEpoch"),
    "the brokers' addresses in the response are replaced with advertised ones": ("Metadata", "DescribeCluster"),
    "topics and their partitions are the brokers'": (
        *("CreateTopics", "DeleteTopics", "CreatePartitions", "DescribeTopicPartitions", "ElectLeaders"),
        *("AlterPartitionReassignments", "ListPartitionReassignments", "AlterReplicaLogDirs", "DescribeLogDirs"),
    ),
    "quotas and metrics of clients are the brokers'": (
        *("DescribeClientQuotas", "AlterClientQuotas", "GetTelemetrySubscriptions", "PushTelemetry"),
    ),
    "the brokers authorize": (
        *("DescribeAcls", "CreateAcls", "DeleteAcls"),
        *("DescribeUserScramCredentials", "AlterUserScramCredentials"),
        *("CreateDelegationToken", "RenewDelegationToken", "ExpireDelegationToken", "DescribeDelegationToken"),
    ),
    "transactions are the brokers', except for the offsets in them": (
        *("AddPartitionsToTxn", "DescribeProducers", "DescribeTransactions", "ListTransactions"),
    ),
    "an administrator aborts a hanging transaction on a partition with it": ("WriteTxnMarkers",),
    "an administrator manages the cluster with it": (
        *("DescribeQuorum", "AddRaftVoter", "RemoveRaftVoter", "UnregisterBroker", "UpdateFeatures"),
    ),
}

RELAYED = {
    "the coordinator follows the transactions that contain offsets": ("InitProducerId", "AddOffsetsToTxn", "EndTxn"),
    "configurations of groups are the coordinator's, all others the brokers'": (
        *("DescribeConfigs", "AlterConfigs", "IncrementalAlterConfigs", "ListConfigResources"),
    ),
}

NOT_SERVED = (apis.FIND_COORDINATOR, apis.WRITE_TXN_MARKERS)

SERVED = {
    "groups are the coordinator's": tuple(
        api.name for api in (*apis.APIS.values(), apis.LIST_GROUPS) if api.key is not None and api not in NOT_SERVED
    ),
}

REFUSED = {
    # Those of them that the coordinator has are served.
    "a group protocol that the coordinator does not serve (KIP-932, KIP-1071)": (
        *("ShareGroupHeartbeat", "ShareGroupDescribe", "ShareFetch", "ShareAcknowledge"),
        *("DescribeShareGroupOffsets", "AlterShareGroupOffsets", "DeleteShareGroupOffsets"),
        *("StreamsGroupHeartbeat", "StreamsGroupDescribe"),
    ),
    "brokers send it to each other for share groups": (
        *("InitializeShareGroupState", "ReadShareGroupState", "WriteShareGroupState", "DeleteShareGroupState"),
        "ReadShareGroupStateSummary",
    ),
    "brokers and controllers send it to each other": (
        *("Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "FetchSnapshot", "UpdateRaftVoter"),
        *("BrokerRegistration", "BrokerHeartbeat", "ControllerRegistration", "AssignReplicasToDirs"),
        *("AlterPartition", "AllocateProducerIds", "Envelope"),
    ),
}


_TABLES: Mapping[Treatment, Mapping[str, Iterable[str]]] = {
    Treatment.REFUSED: REFUSED,
    Treatment.SERVED: SERVED,
    Treatment.RELAYED: RELAYED,
    Treatment.ANSWERED: ANSWERED,
    Treatment.PASSED: PASSED,
}

API_POLICIES: Mapping[int, ApiPolicy] = {
    key: ApiPolicy(treatment, reason)
    for treatment, table in _TABLES.items()
    for reason, names in table.items()
    for key in api_keys(names)
}
"""What the gateway does with each API, by API key. An API that is not in it is refused."""
