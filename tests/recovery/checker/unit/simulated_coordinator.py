"""A coordinator in virtual time: the real state machine, called in batches, killed and started again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256

import msgspec

from coordinator_logic import snapshot
from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.events import Place, Request, Response
from coordinator_logic.groups.consumer.epochs import JOIN_EPOCH
from coordinator_logic.messages import ConsumerGroupHeartbeatRequest, OffsetCommitRequest
from coordinator_logic.step import step
from tests.recovery.checker.operations import grouped
from tests.recovery.checker.unit.simulation import World, encoded
from tests.recovery.recorded.surroundings import HEARTBEAT_MS, SESSION_MS

BATCH_MS = 300

CONFIG = CoordinatorConfig(
    group_initial_rebalance_delay_ms=500,
    group_consumer_session_timeout_ms=SESSION_MS,
    group_consumer_heartbeat_interval_ms=HEARTBEAT_MS,
    offsets_retention_check_interval_ms=10 * 365 * 24 * 3_600_000,
    late_answer_ms=2_000,
)


@dataclass(frozen=True)
class Defects:
    """What is wrong with the coordinator."""

    expels_before_it_reads: bool = False
    loses_batches: bool = False
    numbers_requests_again: bool = False
    accepts_old_generations: bool = False
    believes_all_is_revoked: bool = False


class SimulatedCoordinator:
    """Reads what was appended, in batches; answers through ``deliver`` (correlation id, response, hash of its bytes).

    When it is killed in a batch, some of the batch's output has been written. The next start runs the batch again.
    """

    def __init__(
        self, world: World, deliver: Callable[[str, Response, str], None], defects: Defects | None = None
    ) -> None:
        self.groups: dict[str, bytes] = {}
        self.journal: list[bytes] = []
        self._world = world
        self._deliver = deliver
        self._defects = defects or Defects()
        self._unread: list[Request] = []
        self._offset = 0
        self._starts = [world.epoch_ms]
        self._is_up = True
        self._open_batch: tuple[list[Request], int] | None = None
        self._older = [self.groups]
        world.after(BATCH_MS, self._run_batch)
        for _ in range(world.plan.outages):
            # The last part of a run is quiet.
            world.after(world.chance.randint(5_000, world.plan.length_ms * 2 // 3), self._kill)

    def append(self, group_id: str, make: Callable[[Place], Request]) -> None:
        """Append a request to the log now."""
        self._unread.append(make(Place(self._world.epoch_ms, 0, self._offset)))
        self._offset += 1

    def _kill(self) -> None:
        if not self._is_up:
            return
        world = self._world
        self._is_up = False
        world.fault("the coordinator is killed")
        if world.chance.random() < 0.7 and self._unread:
            self._open_batch = self._unread, world.epoch_ms
            self._unread = []
            responses, journal, _ = self._steps(*self._open_batch)
            self._write(responses[: world.chance.randint(0, len(responses))], journal)
        world.after(world.chance.choice((1_000, 4_000, 9_000)), self._start)

    def _start(self) -> None:
        self._is_up = True
        self._world.fault("the coordinator starts")
        if self._defects.loses_batches:
            self.groups = self._older[max(0, len(self._older) - 10)]
        if self._open_batch is not None:
            requests, batch_time = self._open_batch
            if self._defects.numbers_requests_again:
                requests = [_numbered_again(request) for request in requests]
            self._commit(requests, batch_time)
            self._open_batch = None
        if self._defects.expels_before_it_reads:
            self._commit([], self._world.epoch_ms)
        self._starts.append(self._world.epoch_ms)
        self._run_batch()

    def _run_batch(self) -> None:
        if not self._is_up:
            return
        requests, self._unread = self._unread, []
        self._commit(requests, self._world.epoch_ms)
        self._world.after(self._world.about(BATCH_MS), self._run_batch)

    def _commit(self, requests: Sequence[Request], batch_time: int) -> None:
        responses, journal, self.groups = self._steps(requests, batch_time)
        self._older.append(self.groups)
        self._write(responses, journal)

    def _steps(
        self, requests: Sequence[Request], batch_time: int
    ) -> tuple[list[Response], list[bytes], dict[str, bytes]]:
        groups = dict(self.groups)
        responses: list[Response] = []
        journal: list[bytes] = []
        started_at = max(start for start in self._starts if start <= batch_time)
        by_group = grouped(requests, lambda request: str(getattr(request.body, "group_id", "")))
        for group_id in sorted(by_group.keys() | groups.keys()):
            kept = groups.get(group_id)
            group = None if kept is None else snapshot.decode(kept)
            of_group = by_group.get(group_id, [])
            if self._defects.accepts_old_generations and group is not None:
                of_group = [_of_generation(request, group.generation) for request in of_group]
            if self._defects.believes_all_is_revoked:
                of_group = [_owning_nothing(request) for request in of_group]
            result = step(
                group_id,
                group,
                of_group,
                batch_time,
                started_at=started_at,
                config=CONFIG,
            )
            groups.pop(group_id, None)
            if result.group is not None:
                groups[group_id] = snapshot.encode(result.group)
            responses += result.responses
            journal += map(encoded, result.journal)
        return responses, journal, groups

    def _write(self, responses: Sequence[Response], journal: Sequence[bytes]) -> None:
        self.journal += journal
        for response in responses:
            self._deliver(response.address.correlation_id, response, sha256(encoded(response)).hexdigest())


def _numbered_again(request: Request) -> Request:
    place = request.place
    return msgspec.structs.replace(request, place=place._replace(offset=place.offset + 10_000))


def _of_generation(request: Request, generation: int) -> Request:
    """A member's commit as if it had been sent in this generation."""
    body = request.body
    if not isinstance(body, OffsetCommitRequest) or not body.member_id:
        return request
    return msgspec.structs.replace(
        request, body=msgspec.structs.replace(body, generation_id_or_member_epoch=generation)
    )


def _owning_nothing(request: Request) -> Request:
    """A heartbeat as if its member had given up all its partitions."""
    body = request.body
    if not isinstance(body, ConsumerGroupHeartbeatRequest) or body.member_epoch <= JOIN_EPOCH:
        return request
    return msgspec.structs.replace(request, body=msgspec.structs.replace(body, topic_partitions=[]))
