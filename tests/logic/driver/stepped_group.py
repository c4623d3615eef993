"""A group that is stepped as in production, with a fake clock and every invariant checked after every step."""

from collections.abc import Sequence
from typing import Any

import msgspec

from coordinator_logic import snapshot
from coordinator_logic.apis import APIS
from coordinator_logic.config import LOGIC_VERSION, CoordinatorConfig
from coordinator_logic.events import Place, ReplyAddress, Request, Response
from coordinator_logic.group import Group
from coordinator_logic.group.record import Record
from coordinator_logic.messages import RequestBody
from coordinator_logic.records import JournalEntry
from coordinator_logic.states import State
from coordinator_logic.step import StepResult, step
from tests.logic.driver.answers import Answer
from tests.logic.invariants import Step, check_journal, check_step

GROUP_ID = "the-group"
SESSION_MS = 5_000
REBALANCE_MS = 10_000
DELAY_MS = 3_000
NEW_MEMBER_MS = 300_000

HARNESS_CONFIG = CoordinatorConfig(
    group_min_session_timeout_ms=10,
    group_max_session_timeout_ms=600_000,
    expiry_allowance_ms=0,
    offsets_retention_check_interval_ms=10 * 365 * 24 * 3_600_000,
    logic_version=LOGIC_VERSION,
)
"""Short sessions; no allowance, so that deadlines fire at the times in the tests; no expiry of offsets."""


class SteppedGroup:
    """One group with its clock, all its requests (``log``) and the answers of the last step (``answered``).

    ``broker_ahead_ms`` is how far the broker's clock, which gives requests their append times, is ahead of ``now``.
    """

    def __init__(self, *, group_id: str = GROUP_ID, started_at: int = 0, **config: Any) -> None:
        self.group_id = group_id
        self.config: CoordinatorConfig = msgspec.structs.replace(HARNESS_CONFIG, **config)
        self.now = 1_000_000
        self.broker_ahead_ms = 0
        self.started_at = started_at
        self.snapshot: bytes | None = None
        self.journal: list[JournalEntry] = []
        self.wake_at: int | None = None
        self.log: list[Request] = []
        self.moved_back: dict[int, int] = {}
        """How many committed offsets the entries of the last step made lower, by their place among its entries."""
        self.answered: list[Answer[Any]] = []
        self._answers: dict[str, Answer[Any]] = {}
        self._next_offset = 0

    # ---- the group -----------------------------------------------------------------------------------------

    @property
    def group(self) -> Group:
        """A copy of the current group."""
        assert self.snapshot is not None, f"group {self.group_id!r} does not exist"
        return snapshot.decode(self.snapshot)

    @property
    def exists(self) -> bool:
        """Whether the group exists."""
        return self.snapshot is not None

    def state(self) -> State:
        """The group's state; not a property, which a type checker would assume to be constant."""
        return self.group.state

    @property
    def records(self) -> list[Record]:
        """All records of the group, oldest first."""
        return [entry.record for entry in self.journal]

    # ---- time ----------------------------------------------------------------------------------------------

    def sleep(self, ms: int) -> list[Answer[Any]]:
        """Let time pass; returns the answers that this causes."""
        self.now += ms
        return self.step([])

    def restart(self) -> None:
        """Restart the coordinator now."""
        self.started_at = self.now

    def step(
        self, requests: Sequence[Request], batch_time: int | None = None, read_until: int | None = None
    ) -> list[Answer[Any]]:
        """Run one batch, for which the log was read up to ``read_until``; returns the answers that it gives."""
        batch_time = self.now if batch_time is None else batch_time
        before = self.snapshot
        result, output = self._run(before, requests, batch_time, read_until)
        assert self._run(before, requests, batch_time, read_until)[1] == output, "the same batch gave another result"
        self.journal += result.journal
        self.wake_at = result.wake_at
        self.moved_back = dict(result.moved_back)
        self.snapshot = None if result.group is None else snapshot.encode(result.group)
        self.log += requests
        self.answered = [self._record_answer(response) for response in result.responses]
        copy = None if before is None else snapshot.decode(before)
        check_step(Step(copy, requests, batch_time, self.started_at, self.config, result, read_until))
        check_journal(self.journal, result.group)
        return self.answered

    def _run(
        self, before: bytes | None, requests: Sequence[Request], batch_time: int, read_until: int | None
    ) -> tuple[StepResult, bytes]:
        group = None if before is None else snapshot.decode(before)
        result = step(
            self.group_id,
            group,
            requests,
            batch_time,
            started_at=self.started_at,
            config=self.config,
            read_until=read_until,
        )
        after = b"" if result.group is None else snapshot.encode(result.group)
        return result, msgspec.json.encode(
            (result.responses, result.journal, result.wake_at, [*result.moved_back.items()], after)
        )

    def _record_answer(self, response: Response) -> Answer[Any]:
        answer = self._answers[response.address.correlation_id]
        assert answer.response is None, f"answered twice: {answer.request.address}"
        assert response.address == answer.request.address
        answer.response = response
        return answer

    # ---- requests ------------------------------------------------------------------------------------------

    def request(
        self,
        api: str,
        body: RequestBody,
        *,
        version: int | None = None,
        client: str = "client",
        host: str = "/127.0.0.1",
        at: int | None = None,
    ) -> Request:
        """A request that the broker appends now, or at the time ``at``."""
        timestamp = self.now + self.broker_ahead_ms if at is None else at
        place = Place(timestamp, 0, self._next_offset)
        self._next_offset += 1
        version = APIS[api].max_version if version is None else version
        address = ReplyAddress(api, version, f"request-{place.offset}", 3, timestamp)
        request = Request(place, address, client, host, body)
        self._answers[address.correlation_id] = Answer(request)
        return request

    def answer_to(self, request: Request) -> Answer[Any]:
        """The answer to a request, which may still be parked."""
        return self._answers[request.address.correlation_id]

    def send(self, api: str, body: RequestBody, **envelope: Any) -> Answer[Any]:
        """Send a request in a batch of its own."""
        request = self.request(api, body, **envelope)
        self.step([request])
        return self.answer_to(request)
