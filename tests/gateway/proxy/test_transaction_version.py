"""The gateway shows the brokers' ``transaction.version``, as far as it serves that level, and none that they lack."""

from typing import Any

import pytest
from kio.index import load_entity_module, load_request_schema
from kio.schema.errors import ErrorCode
from kio.static.constants import EntityType
from kio.static.primitive import i16, i64
from kio.static.protocol import Entity

from streaming.gateway.proxy.api_versions import ApiRanges
from streaming.gateway.transactions.handlers import TRANSACTION_FEATURE
from streaming.gateway.wire.api_keys import API_VERSIONS, END_TXN, PRODUCE, TXN_OFFSET_COMMIT
from streaming.gateway.wire.client_request import ClientRequest, Feature, ServedApi

FEATURE = TRANSACTION_FEATURE.name
OF_4_0 = {PRODUCE: 12, END_TXN: 5, TXN_OFFSET_COMMIT: 5}
OF_3_9 = {PRODUCE: 11, END_TXN: 4, TXN_OFFSET_COMMIT: 4}
VERSION = 4


def answer_of_broker(versions: dict[int, int], supported: dict[str, int], finalized: dict[str, int]) -> Any:
    """A broker's response to ApiVersions with the highest version of each API and level of each feature."""
    module: Any = load_entity_module("api_versions", VERSION, EntityType.response)
    return module.ApiVersionsResponse(
        error_code=ErrorCode.none,
        api_keys=tuple(
            module.ApiVersion(api_key=i16(key), min_version=i16(0), max_version=i16(highest))
            for key, highest in {API_VERSIONS: VERSION, **versions}.items()
        ),
        throttle_time=module.ApiVersionsResponse.__dataclass_fields__["throttle_time"].default,
        supported_features=tuple(
            module.SupportedFeatureKey(name=name, min_version=i16(0), max_version=i16(highest))
            for name, highest in supported.items()
        ),
        finalized_features_epoch=i64(7),
        finalized_features=tuple(
            module.FinalizedFeatureKey(name=name, min_version_level=i16(level), max_version_level=i16(level))
            for name, level in finalized.items()
        ),
    )


def shown(of_broker: Any, feature: Feature | None = TRANSACTION_FEATURE) -> tuple[Any, dict[str, int]]:
    """The gateway's response, and the finalized features in it."""

    async def never(_request: ClientRequest) -> Entity:
        raise NotImplementedError

    served = {
        END_TXN: ServedApi("EndTxn", END_TXN, 0, 5, never),
        TXN_OFFSET_COMMIT: ServedApi("TxnOffsetCommit", TXN_OFFSET_COMMIT, 0, 5, never, brokers_feature=feature),
    }
    request: Any = load_request_schema(API_VERSIONS, VERSION)
    software = {"client_software_name": "test", "client_software_version": "1"}
    answer: Any = ApiRanges({VERSION: of_broker}, served).api_versions_response(request(**software))
    return answer, {each.name: each.max_version_level for each in answer.finalized_features}


@pytest.mark.parametrize(("level", "expected"), [(1, 1), (2, 2), (3, 2)])
def test_the_brokers_level_is_shown_up_to_the_one_that_the_gateway_serves(level: int, expected: int) -> None:
    of_broker = answer_of_broker(OF_4_0, {FEATURE: 3}, {FEATURE: level, "metadata.version": 25})
    answer, finalized = shown(of_broker)
    assert finalized == {FEATURE: expected, "metadata.version": 25}
    assert {each.name: each.max_version for each in answer.supported_features} == {FEATURE: 2}
    # By its epoch, a producer notices that the brokers' level has changed.
    assert answer.finalized_features_epoch == 7


def test_brokers_that_support_a_level_and_do_not_use_it_offer_their_requests_alone() -> None:
    answer, finalized = shown(answer_of_broker(OF_4_0, {FEATURE: 2}, {}))
    assert finalized == {}
    assert {api.api_key: api.max_version for api in answer.api_keys} == {API_VERSIONS: VERSION, **OF_4_0}


def test_brokers_before_4_0_offer_transactions_v1() -> None:
    answer, finalized = shown(answer_of_broker(OF_3_9, {}, {"metadata.version": 21}))
    assert finalized == {"metadata.version": 21}
    assert answer.supported_features == ()
    assert {api.api_key: api.max_version for api in answer.api_keys} == {API_VERSIONS: VERSION, **OF_3_9}


def test_a_gateway_that_does_not_serve_the_feature_hides_it() -> None:
    answer, finalized = shown(answer_of_broker(OF_4_0, {FEATURE: 2}, {FEATURE: 2}), feature=None)
    assert finalized == {}
    assert answer.supported_features == ()
