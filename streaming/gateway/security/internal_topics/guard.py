"""Checks the topics of one connection's requests before they are passed on to the broker."""

import asyncio
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from streaming.gateway.limits import GatewayLimits
from streaming.gateway.security.internal_topics.answers import DESCRIBING_APIS, LISTING_APIS, Edit, edit_answer
from streaming.gateway.security.internal_topics.catalog import InternalTopics
from streaming.gateway.security.internal_topics.description_requests import asks_for_all, without_creation
from streaming.gateway.security.internal_topics.fetch_scan import IDS_SINCE, fetched_topic_ids
from streaming.gateway.security.internal_topics.produce_scan import ProduceScan
from streaming.gateway.security.internal_topics.refusals import (
    DELETE_BY_ID_SINCE,
    GUARDED_APIS,
    PartialRefusal,
    refuse_topics,
)
from streaming.gateway.security.internal_topics.rules import View
from streaming.gateway.wire.api_keys import DELETE_TOPICS, FETCH, PRODUCE, api_name
from streaming.gateway.wire.codec import LARGE_REQUEST_BYTES, decode_request_in_steps, encode_request_in_steps
from streaming.gateway.wire.frames import LENGTH_SIZE, ByteBuffer, FrameRefused, RefusalReason, RequestHead
from streaming.gateway.wire.loop_share import LoopShare
from streaming.gateway.wire.steps import ENTRIES_PER_STEP, Steps, run_steps

NO_ACKS = 0


class VerdictKind(Enum):
    """What to do with a request."""

    PASS = auto()
    INCOMPLETE = auto()
    """More of its bytes must arrive first."""
    BLOCKED = auto()
    """It is large and checked in steps, or its topic ids are being resolved; ``resume`` is called then."""
    REFUSE = auto()
    REPLACE = auto()
    """Another request is sent in its place."""


@dataclass(frozen=True)
class Verdict:
    """The verdict on a request.

    scan: for PASS, the scan of a request whose last bytes have not arrived.
    edit: for PASS and REPLACE, edits the broker's answer; None if it is passed on as it is.
    refusal: for REFUSE.
    rest: for REPLACE, the other request; for REFUSE, the request without the refused topics, or None if nothing is left
        for the broker.
    """

    kind: VerdictKind
    scan: ProduceScan | None = None
    edit: Edit | None = None
    refusal: PartialRefusal | None = None
    rest: bytes | None = None


PASS, INCOMPLETE, BLOCKED = (Verdict(kind) for kind in (VerdictKind.PASS, VerdictKind.INCOMPLETE, VerdictKind.BLOCKED))


class TopicGuard:
    """The guard of one connection.

    topics: the internal topics.
    limits: of the gateway: how large a request may be that is collected as a whole, and how many entries it may have.
    loop_share: gives time to the checks of large requests.
    resume: called when a blocked request can be checked again.
    fail: called with the reason when topic ids cannot be resolved.
    """

    def __init__(
        self,
        topics: InternalTopics,
        limits: GatewayLimits,
        loop_share: LoopShare,
        resume: Callable[[], None],
        fail: Callable[[str], None],
    ) -> None:
        self._topics = topics
        self._limits = limits
        self._loop_share = loop_share
        self._resume = resume
        self._fail = fail
        self._resolving: asyncio.Task[None] | None = None
        self._scan: ProduceScan | None = None
        self._steps: Steps[Verdict] | None = None
        self._outcome: Verdict | Exception | None = None
        self._is_closed = False

    def request_left(self) -> None:
        """The request that was checked last has left the buffer, or begins to leave it."""
        self._scan = self._outcome = None

    def close(self) -> None:
        """Stop checking and resolving."""
        self._is_closed = True
        if self._resolving is not None:
            self._resolving.cancel()
        if self._steps is not None:
            self._steps.close()

    def check(self, head: RequestHead, received: ByteBuffer, principal: str) -> Verdict:
        """Return the verdict on the request at the front of the buffer; call :meth:`request_left` when it is accepted.

        Raises :class:`FrameRefused` for a request that no broker would accept, for one that has too many entries, and
        for one that writes to an internal topic and expects no response.
        """
        rules = self._topics.rules
        may_use = rules.may_use(principal)
        if head.api_key in LISTING_APIS - DESCRIBING_APIS:
            view = View.WHOLE if may_use else View.NONE
            return Verdict(VerdictKind.PASS, edit=edit_answer(rules, head.api_key, head.version, view))
        if head.api_key not in DESCRIBING_APIS and (head.api_key not in GUARDED_APIS or may_use):
            return PASS
        if self._steps is not None or self._outcome is not None:
            return self._settled()
        if head.api_key == PRODUCE:
            return self._check_produce(head, received)
        size = LENGTH_SIZE + head.length
        if len(received) < size:
            return INCOMPLETE
        if head.api_key in DESCRIBING_APIS:
            return self._run(self._check_description(head, received.peek(size), may_use=may_use), size)
        return self._run(self._check_whole(head, received.peek(size)), size)

    def _run(self, steps: Steps[Verdict], size: int) -> Verdict:
        """Run the check of a request: at once if it is small, and otherwise between what else the loop does."""
        if size <= LARGE_REQUEST_BYTES:
            return run_steps(steps)
        self._steps = steps
        is_later = False

        def settle(outcome: Verdict | Exception) -> None:
            self._steps, self._outcome = None, outcome
            if is_later and not self._is_closed:
                self._resume()

        self._loop_share.run(None, steps, settle, settle)
        is_later = True
        return self._settled()

    def _settled(self) -> Verdict:
        """Return the verdict of a check in steps, or raise its exception; BLOCKED as long as it goes on."""
        outcome = self._outcome
        if isinstance(outcome, Exception):
            raise outcome
        if outcome is BLOCKED:
            # Once its ids are resolved, it is checked again.
            self._outcome = None
        return BLOCKED if outcome is None else outcome

    def _check_whole(self, head: RequestHead, frame: bytes) -> Steps[Verdict]:
        max_entries = self._limits.max_request_entries
        if head.api_key == FETCH and head.version >= IDS_SINCE:
            ids = yield from fetched_topic_ids(frame, head.version, max_entries)
            return (yield from self._check_ids(head, frame, ids))
        if head.api_key == DELETE_TOPICS and head.version >= DELETE_BY_ID_SINCE:
            _, payload = yield from decode_request_in_steps(frame, head.api_key, head.version, max_entries)
            ids = yield from _ids(payload.topics)
            return (yield from self._check_ids(head, frame, ids, always=True))
        is_suspicious = any(name.encode() in frame for name in self._topics.rules.guarded(head.api_key))
        return (yield from self._refusal_of(head, frame)) if is_suspicious else PASS

    def _check_description(self, head: RequestHead, frame: bytes, *, may_use: bool) -> Steps[Verdict]:
        """Return the verdict on a request for descriptions: it passes, but must not create an internal topic."""
        rules, rest = self._topics.rules, None
        if may_use:
            view = View.WHOLE
        elif asks_for_all(frame, head):
            view = View.NONE
        elif any(name.encode() in frame for name in rules.all):
            view = View.BY_NAME
            max_entries = self._limits.max_request_entries
            client_id, payload = yield from decode_request_in_steps(frame, head.api_key, head.version, max_entries)
            replaced = yield from without_creation(payload, rules)
            if replaced is not None:
                rest = yield from encode_request_in_steps(replaced, head.correlation_id, client_id)
        else:
            view = View.BY_ID
        kind = VerdictKind.PASS if rest is None else VerdictKind.REPLACE
        return Verdict(kind, edit=edit_answer(rules, head.api_key, head.version, view), rest=rest)

    def _check_produce(self, head: RequestHead, received: ByteBuffer) -> Verdict:
        size = LENGTH_SIZE + head.length
        # The request may be checked many times while it arrives. Each byte is scanned once.
        if self._scan is None:
            self._scan = ProduceScan(head.version, self._topics.rules.guarded(PRODUCE))
        scan = self._scan
        scan.feed(received.peek(size), 0)
        if not scan.found:
            if scan.has_topic or scan.is_complete:
                return PASS if scan.is_complete else Verdict(VerdictKind.PASS, scan)
            return PASS if len(received) >= size else INCOMPLETE
        if size > self._limits.max_request_bytes:
            raise FrameRefused(RefusalReason.INTERNAL_TOPIC, f"{api_name(PRODUCE)} of {head.length} bytes")
        if len(received) < size:
            return INCOMPLETE
        return self._run(self._refusal_of(head, received.peek(size)), size)

    def _check_ids(self, head: RequestHead, frame: bytes, ids: set[bytes], *, always: bool = False) -> Steps[Verdict]:
        left = self._topics.without_foreign(ids)
        if not left and not always:
            return PASS
        if unknown := self._topics.unknown(left):
            if self._resolving is None:
                self._resolving = asyncio.get_running_loop().create_task(self._resolve(unknown))
            return BLOCKED
        guarded = self._topics.rules.guarded(head.api_key)
        is_suspicious = always or any(self._topics.name_of(each) in guarded for each in left)
        return (yield from self._refusal_of(head, frame)) if is_suspicious else PASS

    def _refusal_of(self, head: RequestHead, frame: bytes) -> Steps[Verdict]:
        """Return the verdict on a request that may name a guarded topic."""
        max_entries = self._limits.max_request_entries
        client_id, payload = yield from decode_request_in_steps(frame, head.api_key, head.version, max_entries)
        guarded = self._topics.rules.guarded(head.api_key)

        def guards(topic: str | bytes) -> bool:
            return (self._topics.name_of(topic) if isinstance(topic, bytes) else topic) in guarded

        refusal = yield from refuse_topics(payload, guards)
        if refusal is None:
            return PASS
        if getattr(payload, "acks", None) == NO_ACKS:
            # A broker closes the connection too: it is the only way to report an error.
            raise FrameRefused(RefusalReason.INTERNAL_TOPIC, f"{api_name(head.api_key)} without a response")
        rest = None
        if refusal.request is not None:
            rest = yield from encode_request_in_steps(refusal.request, head.correlation_id, client_id)
        return Verdict(VerdictKind.REFUSE, refusal=refusal, rest=rest)

    async def _resolve(self, unknown: Set[bytes]) -> None:
        try:
            await self._topics.resolve(unknown)
        except Exception as failure:
            # Whatever a broker or its network does, the request must not pass.
            self._fail(f"the topics of a request cannot be resolved: {failure!r}")
            return
        finally:
            self._resolving = None
        self._resume()


def _ids(topics: Sequence[Any]) -> Steps[set[bytes]]:
    """Return the ids of the topics that are named by their ids."""
    ids = set()
    for number, topic in enumerate(topics, 1):
        if topic.topic_id:
            ids.add(topic.topic_id.bytes)
        if number % ENTRIES_PER_STEP == 0:
            yield
    return ids
