"""Only APIs and versions that the gateway knows are offered, whatever a broker offers."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from kio.index import load_entity_module
from kio.schema.api_versions.v4.response import ApiVersion, ApiVersionsResponse
from kio.schema.errors import ErrorCode
from kio.static.constants import EntityType
from kio.static.primitive import i16, i32Timedelta
from kio.static.protocol import Entity

from streaming.gateway.proxy.api_policy import API_POLICIES, Treatment
from streaming.gateway.proxy.api_versions import ApiRanges
from streaming.gateway.wire.api_keys import API_NAMES, END_TXN, FIND_COORDINATOR, METADATA, PRODUCE, SASL_HANDSHAKE
from streaming.gateway.wire.client_request import ClientRequest, ServedApi
from streaming.gateway.wire.codec import KNOWN_VERSIONS
from tests.gateway.groups.driven.coordinator import Cluster, Gateway, LogicCoordinator

JOIN_GROUP, OFFSET_COMMIT, LIST_OFFSETS, STREAMS_GROUP_HEARTBEAT = 11, 8, 2, 88
NEXT_KEYS = range(max(API_NAMES) + 1, max(API_NAMES) + 10)
"""Keys that Kafka has not given to an API yet."""

REMOVED_KEYS = {4: "LeaderAndIsr", 5: "StopReplica", 6: "UpdateMetadata", 7: "ControlledShutdown"}
"""APIs between brokers, which Kafka 4 removed."""

WITH_TOPIC_IDS = {8: 10, 9: 10, 68: 1, 69: 1}
"""The highest versions of the APIs that name topics by their ids in some version."""

GROUP_APIS = Gateway(LogicCoordinator(), Cluster()).apis
"""The group APIs as a gateway serves them."""

HIGHEST_POSSIBLE = (1 << 15) - 1


async def never(_request: ClientRequest) -> Entity:
    raise NotImplementedError


def a_broker(versions: dict[int, tuple[int, int]]) -> ApiVersionsResponse:
    """What a broker with these APIs and versions answers to ApiVersions."""
    return ApiVersionsResponse(
        error_code=ErrorCode.none,
        api_keys=tuple(
            ApiVersion(api_key=i16(k), min_version=i16(a), max_version=i16(b)) for k, (a, b) in versions.items()
        ),
        throttle_time=i32Timedelta.parse(timedelta(0)),
    )


def a_request(version: int) -> Any:
    """A request of a version of ApiVersions."""
    software = {"client_software_name": "c", "client_software_version": "1"}
    return type("Request", (), {"__version__": version, **software})()


def offered(
    versions: dict[int, tuple[int, int]], served: dict[int, ServedApi] | None = None
) -> dict[int, tuple[int, int]]:
    """The ranges that the gateway offers in front of such a broker."""
    ranges = ApiRanges({4: a_broker(versions)}, served or {})
    response: Any = ranges.api_versions_response(a_request(4))
    return {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}


def test_every_api_of_kafka_has_a_treatment_and_a_reason() -> None:
    assert set(API_POLICIES) == set(API_NAMES) == set(range(93)) - set(REMOVED_KEYS)
    assert all(policy.reason for policy in API_POLICIES.values())


def test_a_broker_with_every_api_in_every_version_is_offered_without_the_refused_ones() -> None:
    everything = dict.fromkeys((*API_NAMES, *REMOVED_KEYS, *NEXT_KEYS), (0, HIGHEST_POSSIBLE))
    served = {
        key: ServedApi(API_NAMES[key], key, 0, KNOWN_VERSIONS[key][1], never)
        for key, policy in API_POLICIES.items()
        if policy.treatment is Treatment.SERVED
    }
    ranges = offered(everything, served)
    assert set(ranges) == {key for key, policy in API_POLICIES.items() if policy.treatment is not Treatment.REFUSED}
    assert {key: highest for key, (_, highest) in ranges.items() if highest > KNOWN_VERSIONS[key][1]} == {}


@pytest.mark.parametrize("key", [*REMOVED_KEYS, *NEXT_KEYS])
def test_an_api_that_the_gateway_does_not_know_is_not_offered(key: int) -> None:
    assert offered({METADATA: (9, 13), key: (0, 0)}) == {METADATA: (9, 13)}


def test_a_version_that_the_gateway_does_not_know_is_not_offered() -> None:
    newest = KNOWN_VERSIONS[LIST_OFFSETS][1]
    assert offered({LIST_OFFSETS: (0, newest + 3)}) == {LIST_OFFSETS: (0, newest)}
    assert offered({LIST_OFFSETS: (newest + 1, newest + 3)}) == {}


def test_old_versions_of_a_passed_api_stay_offered_and_those_of_a_decoded_one_do_not() -> None:
    # librdkafka before 2.11 wants Produce v0 in the list, and uses newer ones.
    assert offered({PRODUCE: (0, 9)}) == {PRODUCE: (0, 9)}
    assert offered({SASL_HANDSHAKE: (0, 1)}) == {SASL_HANDSHAKE: (1, 1)}


def test_group_apis_need_a_handler_and_unserved_group_protocols_are_refused_even_with_one() -> None:
    of_broker = dict.fromkeys((JOIN_GROUP, OFFSET_COMMIT, END_TXN, FIND_COORDINATOR, STREAMS_GROUP_HEARTBEAT), (0, 1))
    served = {key: ServedApi(API_NAMES[key], key, 0, 1, never) for key in (JOIN_GROUP, STREAMS_GROUP_HEARTBEAT)}
    assert set(offered(of_broker, served)) == {JOIN_GROUP, END_TXN, FIND_COORDINATOR}


def test_apis_that_name_topics_by_id_are_offered_only_where_brokers_know_ids() -> None:
    served = {key: GROUP_APIS[key] for key in WITH_TOPIC_IDS}
    assert {key: api.max_version for key, api in served.items()} == WITH_TOPIC_IDS
    in_front_of = {newest: offered({METADATA: (0, newest), 8: (2, 10), 9: (1, 10)}, served) for newest in (11, 12)}
    assert {key: in_front_of[12][key][1] for key in WITH_TOPIC_IDS} == WITH_TOPIC_IDS
    assert {key: in_front_of[11][key][1] for key in in_front_of[11] if key in WITH_TOPIC_IDS} == {8: 9, 9: 9}


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("level", [None, 0, 1, 2])
def test_consumer_groups_show_as_a_feature_whatever_the_brokers_level_is(version: int, level: int | None) -> None:
    module: Any = load_entity_module("api_versions", version, EntityType.response)
    kept = module.FinalizedFeatureKey(name="metadata.version", max_version_level=i16(27), min_version_level=i16(27))
    of_broker = () if level is None else (replace(kept, name="group.version", max_version_level=i16(level)),)
    hidden = tuple(replace(kept, name=f"{name}.version") for name in ("share", "streams", "transaction"))
    answer = module.ApiVersionsResponse(
        error_code=ErrorCode.none,
        api_keys=(module.ApiVersion(api_key=i16(METADATA), min_version=i16(0), max_version=i16(13)),),
        throttle_time=i32Timedelta.parse(timedelta(0)),
        finalized_features=(kept, *of_broker, *hidden),
    )
    for served in ({}, {68: GROUP_APIS[68]}):
        rewritten: Any = ApiRanges({version: answer}, served).api_versions_response(a_request(version))
        finalized = {each.name: each.max_version_level for each in rewritten.finalized_features}
        assert finalized == {"metadata.version": 27} | ({"group.version": 1} if served else {})
        supported = {each.name: (each.min_version, each.max_version) for each in rewritten.supported_features}
        assert supported == ({"group.version": (0, 1)} if served and version >= 4 else {})


def test_the_group_apis_are_those_that_a_client_sends_to_a_coordinator() -> None:
    by_treatment: dict[Treatment, set[int]] = {treatment: set() for treatment in Treatment}
    for key, policy in API_POLICIES.items():
        by_treatment[policy.treatment].add(key)
    assert by_treatment[Treatment.SERVED] == {8, 9, 11, 12, 13, 14, 15, 16, 28, 42, 47, 68, 69}
    assert by_treatment[Treatment.RELAYED] == {22, 25, 26, 32, 33, 44, 74}
    assert by_treatment[Treatment.ANSWERED] == {10, 17, 18, 36}
    assert by_treatment[Treatment.REFUSED] >= {*range(76, 80), *range(83, 93)}
