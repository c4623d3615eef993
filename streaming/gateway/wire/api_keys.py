"""Keys of the APIs that the gateway treats specially, by Kafka's names.

The keys and versions of group APIs are in :mod:`coordinator_logic.apis`; the others come from Kafka's schemas in kio.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from kio.schema.index import api_key_map

API_NAMES: Mapping[int, str] = MappingProxyType(
    {key: name.title().replace("_", "") for key, name in api_key_map.items()}
)
"""Kafka's names of the APIs that kio knows, by API key."""

_KEYS: dict[str, int] = {name: key for key, name in API_NAMES.items()}


def api_name(api_key: int) -> str:
    """Return Kafka's name of an API, ``OffsetFetch``; the key as text for an API that kio does not know."""
    return API_NAMES.get(api_key, str(api_key))


def api_keys(names: Iterable[str]) -> frozenset[int]:
    """Return the keys of APIs by Kafka's names. ``KeyError`` for a name that kio does not know."""
    return frozenset(_KEYS[name] for name in names)


PRODUCE = _KEYS["Produce"]
FETCH = _KEYS["Fetch"]
METADATA = _KEYS["Metadata"]
FIND_COORDINATOR = _KEYS["FindCoordinator"]
SASL_HANDSHAKE = _KEYS["SaslHandshake"]
API_VERSIONS = _KEYS["ApiVersions"]
DESCRIBE_TOPIC_PARTITIONS = _KEYS["DescribeTopicPartitions"]
CREATE_TOPICS = _KEYS["CreateTopics"]
DELETE_TOPICS = _KEYS["DeleteTopics"]
CREATE_PARTITIONS = _KEYS["CreatePartitions"]
ADD_PARTITIONS_TO_TXN = _KEYS["AddPartitionsToTxn"]
END_TXN = _KEYS["EndTxn"]
TXN_OFFSET_COMMIT = _KEYS["TxnOffsetCommit"]
SASL_AUTHENTICATE = _KEYS["SaslAuthenticate"]
DESCRIBE_CONFIGS = _KEYS["DescribeConfigs"]
ALTER_CONFIGS = _KEYS["AlterConfigs"]
INCREMENTAL_ALTER_CONFIGS = _KEYS["IncrementalAlterConfigs"]
LIST_CONFIG_RESOURCES = _KEYS["ListConfigResources"]
DESCRIBE_QUORUM = _KEYS["DescribeQuorum"]
DESCRIBE_CLUSTER = _KEYS["DescribeCluster"]

READING_APIS = api_keys(
    (
        *("Fetch", "ListOffsets", "OffsetForLeaderEpoch", "DescribeProducers", "DescribeConfigs"),
        *("Metadata", "DescribeTopicPartitions"),
    )
)
"""APIs with which clients read or describe topics that they name."""
