"""Answers in a form that can be compared: what may differ between the two sides is mapped.

* Generated member ids become ``{prefix}#{n}``, the n-th that was seen with this prefix (client or instance id).
* Lists of members have no order; neither have "all offsets".
* Texts of errors are left out.
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
from tests.oracle.script import GENERATED_ID

Canonical = Any


class Names:
    """The names of one side's generated ids, in the order in which they were seen."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._seen: dict[str, int] = {}

    def copy(self) -> "Names":
        """The same names, to try something."""
        other = Names()
        other._names, other._seen = dict(self._names), dict(self._seen)
        return other

    def canonical(self, answer: ResponseBody | None) -> Canonical:
        """An answer, or a connection that was closed instead (None), in the form to compare."""
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
        return self._named(plain)

    def _sort_members(self, holder: dict[str, Any]) -> None:
        holder["members"].sort(key=lambda member: self._sort_key(member["memberId"]))

    def _sort_key(self, member_id: str) -> tuple[bool, str]:
        """Known ones first, so that a new one gets its name after all that were before it."""
        known = self._names.get(member_id)
        return (known is None, known or GENERATED_ID.sub("", member_id))

    def _named(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.name(value)
        if isinstance(value, list):
            return [self._named(item) for item in value]
        if isinstance(value, dict):
            return {key: self._named(item) for key, item in value.items() if key != "errorMessage"}
        return value

    def name(self, text: str) -> str:
        """The name of a generated id; any other text as it is."""
        if len(text) < 37 or not GENERATED_ID.fullmatch(text[-37:]):
            return text
        if text not in self._names:
            prefix = text[:-37]
            self._seen[prefix] = self._seen.get(prefix, 0) + 1
            self._names[text] = f"{prefix}#{self._seen[prefix]}"
        return self._names[text]


def _sort_offsets(topics: list[dict[str, Any]]) -> None:
    for topic in topics:
        topic["partitions"].sort(key=lambda partition: partition["partitionIndex"])
    topics.sort(key=lambda topic: topic["name"])
