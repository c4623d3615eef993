"""The APIs and versions that the gateway offers: those of the broker that the gateway knows and does not refuse."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

from kio.index import load_entity_module
from kio.schema.api_versions.v0.response import ApiVersion as ApiVersionV0
from kio.schema.api_versions.v0.response import ApiVersionsResponse as ApiVersionsResponseV0
from kio.schema.errors import ErrorCode
from kio.static.constants import EntityType
from kio.static.primitive import i16
from kio.static.protocol import Entity, RequestPayload, ResponsePayload

from streaming.gateway.proxy.api_policy import API_POLICIES, Treatment
from streaming.gateway.security.internal_topics.answers import LISTING_APIS
from streaming.gateway.wire.api_keys import (
    API_VERSIONS,
    DESCRIBE_CLUSTER,
    DESCRIBE_QUORUM,
    FETCH,
    METADATA,
    PRODUCE,
    SASL_HANDSHAKE,
)
from streaming.gateway.wire.client_request import ServedApi
from streaming.gateway.wire.codec import KNOWN_VERSIONS

REWRITTEN_APIS = LISTING_APIS | {DESCRIBE_CLUSTER}
"""APIs whose responses from the broker the gateway decodes."""

MAX_VERSIONS = {
    # From v13, the request has the ids of topics in place of their names (KIP-516).
    PRODUCE: 12,
    # From v16, likewise.
    FETCH: 15,
    # From v2, the response contains the controllers' own addresses (KIP-853).
    DESCRIBE_QUORUM: 1,
}
"""Caps on what the broker offers."""

MIN_VERSIONS = {
    # In v0, SASL tokens follow without request headers (KIP-152).
    SASL_HANDSHAKE: 1
}

METADATA_VERSION_WITH_TOPIC_IDS = 12
"""The first version of Metadata in which a client can ask for topics by their ids (KIP-516)."""

HIDDEN_FEATURES = frozenset({"group.version", "share.version", "streams.version", "transaction.version"})
"""Features of the broker's own coordinators. A client that sees one may use a protocol that bypasses the gateway. The
gateway shows those of the APIs that it serves."""

VALID_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""The syntax of ``client_software_name`` and ``client_software_version`` (KIP-511)."""

FIRST_VERSION_WITH_SOFTWARE = 3
"""The first version of ApiVersions in which the request names the client's software."""

FIRST_VERSION_WITH_LEVEL_0 = 4
"""The first version of ApiVersions whose features may have 0 as their lowest level."""


class VersionRange(NamedTuple):
    """The lowest and the highest version of an API."""

    lowest: int
    highest: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.lowest <= version <= self.highest


class ApiRanges:
    """The APIs and versions that the gateway offers for one broker.

    responses: the broker's responses to ApiVersions, by version.
    served: the APIs that the gateway's handlers answer, by key.
    """

    def __init__(self, responses: Mapping[int, ResponsePayload], served: Mapping[int, ServedApi]) -> None:
        newest: Any = responses[max(responses)]
        of_broker = {int(api.api_key): VersionRange(api.min_version, api.max_version) for api in newest.api_keys}
        offered = ((key, _offered(key, of_broker, served)) for key in {*of_broker, *served})
        self._ranges = {key: versions for key, versions in offered if versions}
        apis = [served[key] for key in self._ranges if key in served]
        self._own_features = {api.feature.name: api.feature for api in apis if api.feature is not None}
        shown = (api.brokers_feature for api in apis)
        self._highest_levels = {feature.name: feature.highest for feature in shown if feature is not None}
        self._responses: dict[int, Entity] = {version: self._rewrite(answer) for version, answer in responses.items()}

    def __getitem__(self, api_key: int) -> VersionRange:
        """``KeyError`` for an API that is not offered."""
        return self._ranges[api_key]

    def api_versions_response(self, request: RequestPayload) -> Entity:
        """Return the response to an ApiVersions request of an offered version."""
        response: Any = self._responses[request.__version__]
        if request.__version__ >= FIRST_VERSION_WITH_SOFTWARE and not _names_valid_software(request):
            response = replace(response, error_code=ErrorCode.invalid_request, api_keys=())
        return cast("Entity", response)

    def _rewrite(self, response: Any) -> Any:
        """Return the broker's response with the offered ranges, without the hidden features, and with our own."""
        (entry_type,) = {type(api) for api in response.api_keys}
        features = {
            name: tuple(filter(None, map(self._of_broker, getattr(response, name)))) + own
            for name, own in self._shown_features(response.__version__).items()
        }
        entries = tuple(
            entry_type(api_key=i16(key), min_version=i16(lowest), max_version=i16(highest))
            for key, (lowest, highest) in sorted(self._ranges.items())
        )
        return replace(response, api_keys=entries, **features)

    def _of_broker(self, feature: Any) -> Any:
        """Return a supported or finalized feature of the broker as clients may see it; None to hide it."""
        highest = self._highest_levels.get(feature.name)
        if highest is None:
            return None if feature.name in HIDDEN_FEATURES else feature
        levels = ("min_version", "max_version", "min_version_level", "max_version_level")
        known = {name: i16(min(getattr(feature, name), highest)) for name in levels if hasattr(feature, name)}
        return replace(feature, **known)

    def _shown_features(self, version: int) -> dict[str, tuple[Any, ...]]:
        """The features that the gateway adds, by the field of the response; in versions without features no field."""
        if version < FIRST_VERSION_WITH_SOFTWARE:
            return {}
        module: Any = load_entity_module("api_versions", version, EntityType.response)
        supported = tuple(
            module.SupportedFeatureKey(name=name, min_version=i16(lowest), max_version=i16(highest))
            for name, lowest, highest in self._own_features.values()
            # Clients that read v3 refuse a feature whose lowest level is 0 (KAFKA-17011).
            if lowest > 0 or version >= FIRST_VERSION_WITH_LEVEL_0
        )
        finalized = tuple(
            module.FinalizedFeatureKey(name=name, max_version_level=i16(level), min_version_level=i16(level))
            for name, _, level in self._own_features.values()
        )
        return {"supported_features": supported, "finalized_features": finalized}


def unsupported_version(offered: VersionRange) -> Entity:
    """Return the response to an ApiVersions request of a version that is not offered: v0, which every client reads."""
    api_versions = ApiVersionV0(
        api_key=i16(API_VERSIONS), min_version=i16(offered.lowest), max_version=i16(offered.highest)
    )
    return ApiVersionsResponseV0(error_code=ErrorCode.unsupported_version, api_keys=(api_versions,))


def _offered(key: int, of_broker: Mapping[int, VersionRange], served: Mapping[int, ServedApi]) -> VersionRange | None:
    """Intersect the ranges that apply to an API; None if it is not offered.

    Versions above those that the gateway knows are never offered. Below them, a broker's own are passed on: they are
    published and do not change.
    """
    policy = API_POLICIES.get(key)
    if policy is None or policy.treatment is Treatment.REFUSED:
        return None
    if policy.treatment is Treatment.SERVED and key not in served:
        return None
    known = VersionRange(*KNOWN_VERSIONS[key])
    is_decoded = policy.treatment is Treatment.ANSWERED or key in REWRITTEN_APIS
    highest = MAX_VERSIONS.get(key, known.highest)
    with_topic_ids = served[key].first_version_with_topic_ids if key in served else None
    if with_topic_ids is not None and not _knows_topic_ids(of_broker):
        highest = min(highest, with_topic_ids - 1)
    ranges = [
        VersionRange(known.lowest if is_decoded else 0, known.highest),
        VersionRange(MIN_VERSIONS.get(key, 0), highest),
    ]
    if key in of_broker:
        ranges.append(of_broker[key])
    if key in served:
        ranges.append(VersionRange(served[key].min_version, served[key].max_version))
    offered = VersionRange(max(r.lowest for r in ranges), min(r.highest for r in ranges))
    return offered if offered.lowest <= offered.highest else None


def _knows_topic_ids(of_broker: Mapping[int, VersionRange]) -> bool:
    return METADATA_VERSION_WITH_TOPIC_IDS in of_broker.get(METADATA, VersionRange(0, 0))


def _names_valid_software(request: Any) -> bool:
    names = (request.client_software_name, request.client_software_version)
    return all(VALID_SOFTWARE.fullmatch(name) for name in names)
