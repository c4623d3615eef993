"""Tells the refused requests of a group from its requests and its journal.

The requests are not replayed one after another: what a replay does not know (starts of the coordinator, its options,
requests that are no longer kept) would make it differ from what happened. Instead, each request is handled by the group
as the journal tells that it was then. A request that the journal has an entry of was accepted.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from coordinator_logic import snapshot
from coordinator_logic.apis import (
    CONSUMER_GROUP_HEARTBEAT,
    HEARTBEAT,
    JOIN_GROUP,
    OFFSET_COMMIT,
    RESET_OFFSETS,
    SYNC_GROUP,
    TXN_OFFSET_COMMIT,
)
from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.errors import Error
from coordinator_logic.events import Request, Response
from coordinator_logic.groups.consumer.records import ConsumerGroupFormed
from coordinator_logic.handlers import handle
from coordinator_logic.messages import JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest
from coordinator_logic.records import GroupCreated, GroupDeleted, JournalEntry, QuarantinedStateDropped, RequestCause
from coordinator_logic.states import State
from coordinator_logic.turn import Output, Turn
from streaming.explain.refusals.group_types import lookup_in
from streaming.explain.refusals.losses import Loss, loss_of
from streaming.explain.refusals.past_group import PastGroup
from streaming.explain.replay.world import refusal
from streaming.journal.fold import Observer
from streaming.journal.folded_group import DOES_NOT_FIT

JUDGED = frozenset(
    api.name
    for api in (
        OFFSET_COMMIT,
        TXN_OFFSET_COMMIT,
        JOIN_GROUP,
        SYNC_GROUP,
        HEARTBEAT,
        CONSUMER_GROUP_HEARTBEAT,
        RESET_OFFSETS,
    )
)
ALWAYS_RECORDED = frozenset({OFFSET_COMMIT.name, TXN_OFFSET_COMMIT.name})
"""The APIs that leave an entry in the journal whenever they are accepted."""

ORDINARY = frozenset({Error.NONE, Error.MEMBER_ID_REQUIRED, Error.REBALANCE_IN_PROGRESS})
"""What a client is answered in the course of each rebalance."""

FORGETS_MEMBER_IDS = (ConsumerGroupFormed, GroupCreated, GroupDeleted, QuarantinedStateDropped)
"""The records after which a member id that was handed out, and not used, is unknown."""


LIMITLESS = {
    "group_min_session_timeout_ms": 0,
    **dict.fromkeys(
        (
            "group_max_session_timeout_ms",
            "group_max_size",
            "group_consumer_max_size",
            "group_max_identifier_bytes",
            "group_max_protocols",
            "group_max_metadata_bytes",
            "group_max_assignment_bytes",
            "group_max_pending_member_ids",
            "group_max_bytes",
            "offset_metadata_max_bytes",
        ),
        2**31 - 1,
    ),
}
"""Options of the job with which no request is refused for its size or its timeout: the journal has no options."""


class Judgement(NamedTuple):
    """A request that was refused, the error, and to what it lost."""

    request: Request
    error: Error
    loss: Loss


class Judge(Observer):
    """Judges the requests of a group between the journal's entries, which come from the first one on.

    Args:
        group_id: The group.
        requests: The group's requests in their order: of all partitions, or of one.
        config: The coordinator's options. What is refused because of them alone is counted, and is no verdict.
    """

    def __init__(self, group_id: str, requests: Sequence[Request], config: CoordinatorConfig) -> None:
        self.past = PastGroup()
        self.unknown = 0
        """Requests of times at which the journal does not tell who was a member."""
        self.has_other_partitions = False
        """Whether the journal names a request of another partition than those of the requests."""
        self.by_options = Counter[str]()
        """Requests that these options alone would refuse, by the name of the error."""
        self._group_id = group_id
        self._requests = requests
        self._config, self._limitless = config, msgspec.structs.replace(config, **LIMITLESS)
        self._places = {(one.place.partition, one.place.offset): index for index, one in enumerate(requests)}
        self._partitions = {one.place.partition for one in requests}
        self._next = 0
        self._verdicts: dict[int, Judgement] = {}
        self._unrecorded: set[int] = set()
        self._last_recorded = -1
        self._handed_out: dict[str, int] = {}
        """Member ids that were given to joins without one, and until when they can be used, in ms."""
        self._snapshot: bytes | None = None

    def on_begin(self, entry: JournalEntry) -> None:
        """Begin with another incarnation; the requests before it are of the one before."""
        self._judge_before(entry)
        self.past.begin(entry)
        self._snapshot = None

    def on_gap(self, entry: JournalEntry) -> None:
        """Forget what may have changed in the entries that are missing."""
        self._judge_before(entry)
        self.past.miss(entry)
        self._snapshot = None

    def on_entry(self, entry: JournalEntry) -> None:
        self._judge_before(entry)
        if self.past.apply(entry):
            self._snapshot = None
            if isinstance(entry.record, FORGETS_MEMBER_IDS):
                self._handed_out.clear()

    def _judge_before(self, entry: JournalEntry) -> None:
        cause, index = entry.cause, None
        if isinstance(cause, RequestCause):
            index = self._places.get((cause.partition, cause.offset))
            self.has_other_partitions |= bool(self._partitions) and cause.partition not in self._partitions
        if index is None:
            # A deadline fires before a request of the same time.
            self._judge_until_time(entry.timestamp)
        else:
            self._judge_until(index)
            self._next = max(self._next, index + 1)
            self._last_recorded = max(self._last_recorded, index)
            self._verdicts.pop(index, None)
            self._unrecorded.discard(index)

    def finish(self) -> list[Judgement]:
        """Judge the requests after the last entry; all verdicts, in the order of the requests."""
        self._judge_until(len(self._requests))
        return [self._verdicts[index] for index in sorted(self._verdicts)]

    @property
    def unexplained(self) -> int:
        """Requests that the group as it was would have accepted, but that the journal has no entry of.

        The job had other options, rejected the request, or its journal has lost entries. Requests after the last one
        that the journal names do not count: they may not have been read yet.
        """
        return sum(index < self._last_recorded for index in self._unrecorded)

    def _judge_until_time(self, time: int) -> None:
        end = self._next
        while end < len(self._requests) and self._requests[end].place.timestamp < time:
            end += 1
        self._judge_until(end)

    def _judge_until(self, end: int) -> None:
        while self._next < end:
            index = self._next
            self._next += 1
            request = self._requests[index]
            if isinstance(request.body, LeaveGroupRequest):
                for leaving in (request.body.member_id, *(one.member_id for one in request.body.members)):
                    self._handed_out.pop(leaving, None)
            if request.address.api not in JUDGED:
                continue
            if self.past.is_known:
                self._judge(index, request)
            else:
                self.unknown += 1

    def _judge(self, index: int, request: Request) -> None:
        group = self.past.group
        # Nearly all heartbeats are certainly accepted, and to handle one takes long.
        if group is not None and lookup_in(group).is_ordinary_heartbeat(group, request.body):
            return
        output, response = self._answer(request, self._limitless)
        error = Error.NONE if response is None else Error(refusal(response))
        if response is not None and isinstance(response.body, JoinGroupResponse) and error is Error.MEMBER_ID_REQUIRED:
            assert isinstance(request.body, JoinGroupRequest)
            until = request.place.timestamp + request.body.session_timeout_ms
            self._handed_out[response.body.member_id] = until
        if error in ORDINARY and self._is_refused_by_options(request):
            return
        if response is not None and error not in ORDINARY:
            self._verdicts[index] = Judgement(request, error, loss_of(request, response, error, self.past))
        elif error is Error.NONE and output.journal and request.address.api in ALWAYS_RECORDED:
            self._unrecorded.add(index)

    def _is_refused_by_options(self, request: Request) -> bool:
        _, response = self._answer(request, self._config)
        error = Error.NONE if response is None else Error(refusal(response))
        if error in ORDINARY:
            return False
        self.by_options[error.name] += 1
        return True

    def _answer(self, request: Request, config: CoordinatorConfig) -> tuple[Output, Response | None]:
        """Handle a request by a copy of the group; None if it is parked, or the copy lacks what its answer needs."""
        output, group = Output(), None
        if self.past.group is not None:
            if self._snapshot is None:
                self._snapshot = snapshot.encode(self.past.group)
            group = snapshot.decode(self._snapshot)
            if group.state is State.DEAD:
                return output, None
            for over in lookup_in(group).hand_out_again(group, self._handed_out, request.place.timestamp):
                del self._handed_out[over]
        turn = Turn(self._group_id, group, request.place.timestamp, request, config, output)
        try:
            handle(turn, request)
        except DOES_NOT_FIT:
            # The copy has no parked requests. What needs them is no refusal.
            return Output(), None
        own = [one for one in output.responses if one.address is request.address]
        return output, own[0] if own else None
