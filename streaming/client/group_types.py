"""What a client does differently by a group's type: the API that describes its groups.

Every type is listed here alone, by its name in ListGroups.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from coordinator_logic import apis, messages
from coordinator_logic.apis import Api, RequestT, ResponseT
from streaming.client.answers import Answer

DescribedT = TypeVar("DescribedT", messages.DescribedGroup, messages.DescribedConsumerGroup)

AnyDescribedGroup = messages.DescribedGroup | messages.DescribedConsumerGroup


@dataclass(frozen=True)
class DescribeApi(Generic[RequestT, ResponseT, DescribedT]):
    """The API that describes groups of one type. It answers a group of another type with GROUP_ID_NOT_FOUND (69).

    request: makes a request from group ids. listed: the groups of an answer. described: the type of each.
    """

    api: Api[RequestT, ResponseT]
    request: Callable[[list[str]], RequestT]
    listed: Callable[[ResponseT], Sequence[DescribedT]]
    described: type[DescribedT]

    def failed(self, group_id: str, answer: Answer[ResponseT]) -> DescribedT:
        """The entry of a group whose answer lists none."""
        return self.described(group_id, answer.error_code, answer.message)


CLASSIC = DescribeApi(
    apis.DESCRIBE_GROUPS, messages.DescribeGroupsRequest, lambda body: body.groups, messages.DescribedGroup
)
CONSUMER = DescribeApi(
    apis.CONSUMER_GROUP_DESCRIBE,
    messages.ConsumerGroupDescribeRequest,
    lambda body: body.groups,
    messages.DescribedConsumerGroup,
)

DESCRIBED_BY: Mapping[str, DescribeApi[Any, Any, Any]] = {"classic": CLASSIC, "consumer": CONSUMER}
"""In the order in which a client asks about a group of unknown type."""


def type_of(group: AnyDescribedGroup) -> str:
    """The name of a described group's type."""
    return next(name for name, by in DESCRIBED_BY.items() if isinstance(group, by.described))
