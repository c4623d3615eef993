"""A case: the requests of one group, as a file that anyone can replay.

The file is JSON. Its requests are the records' values as they are in the topic, with their place in the log.
"""

import re
from pathlib import Path

import msgspec

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.events import Request
from streaming.contract.output.text import escaped_json
from streaming.job.log_order import sort_records
from streaming.job.rows.reading import Rejection, read_request
from streaming.job.rows.records import KafkaRecord

ANY_PARTITION = 2**31 - 1
"""Above every reply partition: no request is rejected because of it."""

NAMES = frozenset({"clientId", "clientHost", "groupInstanceId", "memberId", "principal"})
"""The fields of an envelope and its body that name a member, its host or its user."""


class RecordedRequest(msgspec.Struct, frozen=True, rename="camel"):
    """A record of ``group-requests``; ``timestamp`` is its append time, ms since the epoch."""

    timestamp: int
    partition: int
    offset: int
    value: msgspec.Raw


class Case(msgspec.Struct, frozen=True, rename="camel"):
    """The requests of a group, in any order, and the configuration of the coordinator that read them.

    ``since``: what happened earlier only prepares the state, and is neither shown nor counted; ms since the epoch.
    """

    group_id: str
    requests: list[RecordedRequest]
    since: int = 0
    config: CoordinatorConfig = CoordinatorConfig()

    def readable(self) -> list[Request]:
        """The requests in the order in which the group handles them, without those that the job would reject."""
        key = self.group_id.encode()
        records = [
            KafkaRecord(one.timestamp, one.partition, one.offset, key, bytes(one.value)) for one in self.requests
        ]
        sort_records(records)
        read = [read_request(record, ANY_PARTITION) for record in records]
        return [request for request in read if not isinstance(request, Rejection)]


def save_case(case: Case, path: Path) -> None:
    """Write a case file."""
    path.write_text(escaped_json(msgspec.json.format(msgspec.json.encode(case), indent=1).decode()) + "\n", "utf-8")


def anonymised(case: Case) -> Case:
    """The case with other names of members, hosts and users: the same name becomes the same pseudonym.

    The group, topics, what clients give as reasons, and what subscriptions and assignments hold as bytes keep their
    names: the group's id is a part of the member ids that the coordinator makes.
    """
    pseudonyms = _Pseudonyms()
    requests = [
        msgspec.structs.replace(
            one, value=msgspec.Raw(msgspec.json.encode(pseudonyms.within(msgspec.json.decode(one.value))))
        )
        for one in case.requests
    ]
    return msgspec.structs.replace(case, requests=requests)


class _Pseudonyms:
    """Numbered, so that no one can try names until a hash fits."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def within(self, value: object) -> object:
        """Replace the names in a part of an envelope."""
        if isinstance(value, dict):
            return {key: self._replaced(key, each) for key, each in value.items()}
        return [self.within(each) for each in value] if isinstance(value, list) else value

    def _replaced(self, key: str, value: object) -> object:
        if key not in NAMES or not isinstance(value, str) or not value:
            return self.within(value)
        # The coordinator makes a member id of a name and a UUID that follows from the request's place in the log.
        generated = _GENERATED_ID.fullmatch(value) if key == "memberId" else None
        return self._pseudonym(generated[1]) + generated[2] if generated else self._pseudonym(value)

    def _pseudonym(self, name: str) -> str:
        return f"name-{self._numbers.setdefault(name, len(self._numbers) + 1)}"


_GENERATED_ID = re.compile(r"(.+)(-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})", re.DOTALL)
