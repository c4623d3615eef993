"""Which APIs and versions a client is told of, and may use: the real broker's, less what would go past the gateway."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

from kio.schema.api_versions.v0.response import ApiVersion as ApiVersionV0
from kio.schema.api_versions.v0.response import ApiVersionsResponse as ApiVersionsResponseV0
from kio.schema.errors import ErrorCode
from kio.static.primitive import i16
from kio.static.protocol import Entity, RequestPayload, ResponsePayload

from streaming.gateway.codec import KNOWN_VERSIONS
from streaming.gateway.request import ServedApi

__all__ = ["API_VERSIONS", "ApiRanges", "VersionRange", "unsupported_version"]

PRODUCE, FETCH, METADATA, FIND_COORDINATOR = 0, 1, 3, 10
SASL_HANDSHAKE, API_VERSIONS, END_TXN, TXN_OFFSET_COMMIT, SASL_AUTHENTICATE = 17, 18, 26, 28, 36
DESCRIBE_QUORUM, DESCRIBE_CLUSTER = 55, 60

READ_HERE = frozenset({METADATA, FIND_COORDINATOR, SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE, DESCRIBE_CLUSTER})
"""APIs of which the gateway reads requests or answers: their versions must be known to kio too."""

GROUP_APIS = frozenset({8, 9, 11, 12, 13, 14, 15, 16, TXN_OFFSET_COMMIT, 42, 47})
"""They are the coordinator's: where the gateway has no handler for one, nobody serves it."""

NEWER_GROUP_APIS = frozenset({68, 69, *range(76, 80), *range(83, 93)})
"""Consumer groups of KIP-848, share groups, streams groups: the broker's own coordinator would answer."""

HIGHEST = {
    # From here on, an error may name the new leader's address.
    PRODUCE: 9,
    FETCH: 15,
    # From here on, the broker adds partitions and offsets to a transaction without being asked (KIP-890).
    END_TXN: 4,
    TXN_OFFSET_COMMIT: 4,
    # From here on, it tells the controllers' addresses.
    DESCRIBE_QUORUM: 1,
}
LOWEST = {
    # Before it, tokens travel without a request around them (KIP-152).
    SASL_HANDSHAKE: 1
}

HIDDEN_FEATURES = frozenset({"transaction.version", "group.version", "share.version", "streams.version"})
"""Features of the broker's own coordinators, which a client would make use of."""

SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""What a client's name and version may look like (KIP-511)."""

SOFTWARE_TOLD_SINCE = 3


class VersionRange(NamedTuple):
    """The lowest and the highest version of an API."""

    lowest: int
    highest: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.lowest <= version <= self.highest


class ApiRanges:
    """What one broker offers through the gateway.

    answers: the broker's responses to ApiVersions, by version.
    served: what the gateway answers itself.
    """

    def __init__(self, answers: Mapping[int, ResponsePayload], served: Mapping[int, ServedApi]) -> None:
        newest: Any = answers[max(answers)]
        of_broker = {int(api.api_key): VersionRange(api.min_version, api.max_version) for api in newest.api_keys}
        self._ranges = {key: shown for key in {*of_broker, *served} if (shown := _shown(key, of_broker, served))}
        self._answers: dict[int, Entity] = {version: self._truthful(answer) for version, answer in answers.items()}

    def __getitem__(self, api_key: int) -> VersionRange:
        """``KeyError`` for an API that is not offered."""
        return self._ranges[api_key]

    def answer(self, request: RequestPayload) -> Entity:
        """The response to an ApiVersions request of a version that is offered."""
        answer: Any = self._answers[request.__version__]
        if request.__version__ >= SOFTWARE_TOLD_SINCE and not _tells_software(request):
            answer = replace(answer, error_code=ErrorCode.invalid_request, api_keys=())
        return cast("Entity", answer)

    def _truthful(self, answer: Any) -> Any:
        (of_version,) = {type(api) for api in answer.api_keys}
        hidden = {
            name: tuple(feature for feature in getattr(answer, name) if feature.name not in HIDDEN_FEATURES)
            for name in ("supported_features", "finalized_features")
            if hasattr(answer, name)
        }
        api_keys = tuple(
            of_version(api_key=i16(key), min_version=i16(lowest), max_version=i16(highest))
            for key, (lowest, highest) in sorted(self._ranges.items())
        )
        return replace(answer, api_keys=api_keys, **hidden)


def unsupported_version(offered: VersionRange) -> Entity:
    """The answer to an ApiVersions request of a version that is not offered: in version 0, which everybody reads."""
    api_versions = ApiVersionV0(
        api_key=i16(API_VERSIONS), min_version=i16(offered.lowest), max_version=i16(offered.highest)
    )
    return ApiVersionsResponseV0(error_code=ErrorCode.unsupported_version, api_keys=(api_versions,))


def _shown(key: int, of_broker: Mapping[int, VersionRange], served: Mapping[int, ServedApi]) -> VersionRange | None:
    if key in NEWER_GROUP_APIS or (key in GROUP_APIS and key not in served):
        return None
    ranges = [VersionRange(LOWEST.get(key, 0), HIGHEST.get(key, 1 << 15))]
    if key in of_broker:
        ranges.append(of_broker[key])
    if key in served:
        ranges.append(VersionRange(served[key].min_version, served[key].max_version))
    if key in READ_HERE:
        ranges.append(VersionRange(*KNOWN_VERSIONS[key]))
    shown = VersionRange(max(r.lowest for r in ranges), min(r.highest for r in ranges))
    return shown if shown.lowest <= shown.highest else None


def _tells_software(request: Any) -> bool:
    return all(SOFTWARE.fullmatch(told) for told in (request.client_software_name, request.client_software_version))
