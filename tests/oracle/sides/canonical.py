"""Convert responses to a form that is equal on both sides if the responses are equivalent.

* A generated member id becomes ``{prefix}#{n}``: the n-th id with this prefix (client id or instance id).
* Lists of members are sorted, and so are the topics and partitions of fetched offsets.
* Error messages are omitted.
"""

from typing import Any

import msgspec

from coordinator_logic.messages import (
    DescribeGroupsResponse,
    JoinGroupResponse,
    ListGroupsResponse,
    OffsetFetchResponse,
    ResponseBody,
)
from tests.oracle.scripts.script import GENERATED_ID

Canonical = Any


class Names:
    """The names of one side's generated ids, in the order of their first occurrence."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def copy(self) -> "Names":
        """Return a copy, for a comparison that may be discarded."""
        other = Names()
        other._names, other._counts = dict(self._names), dict(self._counts)
        return other

    def canonical(self, answer: ResponseBody | None) -> Canonical:
        """Return the canonical form of a response, or of a closed connection (None)."""
        if answer is None:
            return "the connection was closed"
        plain = msgspec.to_builtins(answer)
        match answer:
            case JoinGroupResponse():
                self._sort_members(plain)
            case DescribeGroupsResponse():
                for group in plain["groups"]:
                    self._sort_members(group)
            case OffsetFetchResponse():
                for group in [plain, *plain["groups"]]:
                    _sort_offsets(group["topics"])
            case ListGroupsResponse():
                plain["groups"].sort(key=lambda group: group["groupId"])
        return self._with_names(plain)

    def _sort_members(self, parent: dict[str, Any]) -> None:
        parent["members"].sort(key=lambda member: self._sort_key(member["memberId"]))

    def _sort_key(self, member_id: str) -> tuple[bool, str]:
        """Sort known ids first, so that new ids are named after them."""
        known = self._names.get(member_id)
        return (known is None, known or GENERATED_ID.sub("", member_id))

    def _with_names(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.name(value)
        if isinstance(value, list):
            return [self._with_names(item) for item in value]
        if isinstance(value, dict):
            return {key: self._with_names(item) for key, item in value.items() if key != "errorMessage"}
        return value

    def name(self, text: str) -> str:
        """Return the name of a generated id; return any other text unchanged."""
        if len(text) < 37 or not GENERATED_ID.fullmatch(text[-37:]):
            return text
        if text not in self._names:
            prefix = text[:-37]
            self._counts[prefix] = self._counts.get(prefix, 0) + 1
            self._names[text] = f"{prefix}#{self._counts[prefix]}"
        return self._names[text]


def _sort_offsets(topics: list[dict[str, Any]]) -> None:
    for topic in topics:
        topic["partitions"].sort(key=lambda partition: partition["partitionIndex"])
    topics.sort(key=lambda topic: topic["name"])
