"""The time that a new group takes until all its members have their assignment."""

import threading
import time
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.messages import JoinedMember
from streaming.client import CoordinatorClient, Generation, GroupMember, MemberCallbacks, MemberConfig
from tests.bench.figures import Formation

FORMATION_LIMIT_SECONDS = 60.0
POLL_SECONDS = 0.5
APART_SECONDS = 0.7
"""Time between the starts of groups of the same size, so that they do not all join in the same batch."""


def protocol_delay_ms(members: int) -> int:
    """Return the protocol's delay before the first generation of an Empty group.

    The initial rebalance delay; it is extended once when further members join during it.
    """
    delay = CoordinatorConfig().group_initial_rebalance_delay_ms
    return delay if members == 1 else 2 * delay


def measure_formation(client: CoordinatorClient, members: int, groups: int) -> Formation:
    """Form ``groups`` groups of ``members`` members each. Raises TimeoutError when one does not form."""
    delay_ms = protocol_delay_ms(members)
    forming = [_FormingGroup(client, f"forming-{uuid.uuid4().hex[:8]}", members) for _ in range(groups)]
    with ThreadPoolExecutor(groups) as pool:
        durations = []
        for group in forming:
            durations.append(pool.submit(group.form))
            time.sleep(APART_SECONDS)
        above = [duration.result() * 1000 - delay_ms for duration in durations]
    return Formation(members=members, delay_ms=delay_ms, above_delay_ms=[round(each, 1) for each in above])


class _FormingGroup:
    """A group whose members join at the same time, each on a thread of its own."""

    def __init__(self, client: CoordinatorClient, group_id: str, size: int) -> None:
        self._client = client
        self._config = MemberConfig(group_id=group_id, protocol_type="bench")
        self._size = size
        self._lock = threading.Lock()
        self._assigned: Counter[int] = Counter()
        self._formed = threading.Event()
        self._formed_at = 0.0

    def assigned(self, generation: Generation) -> None:
        """Count an assignment. The group has formed when all members have one of the same generation."""
        with self._lock:
            self._assigned[generation.generation_id] += 1
            if self._assigned[generation.generation_id] == self._size and not self._formed.is_set():
                self._formed_at = time.perf_counter()
                self._formed.set()

    def form(self) -> float:
        """Run the members until all are assigned; return the seconds from the first join to the last assignment."""
        begin = time.perf_counter()
        with ThreadPoolExecutor(self._size) as pool:
            for done in [pool.submit(self._run_member) for _ in range(self._size)]:
                done.result()
        return self._formed_at - begin

    def _run_member(self) -> None:
        deadline = time.monotonic() + FORMATION_LIMIT_SECONDS
        with GroupMember(self._client, _Assignee(self), self._config) as member:
            while not self._formed.is_set():
                if time.monotonic() > deadline:
                    raise TimeoutError(f"group {self._config.group_id} did not form in {FORMATION_LIMIT_SECONDS:.0f} s")
                if member.poll(POLL_SECONDS):
                    self._formed.wait(POLL_SECONDS)


class _Assignee(MemberCallbacks):
    """The callbacks of a member that supports a single protocol, and reports its assignment to the group."""

    def __init__(self, group: _FormingGroup) -> None:
        self._group = group

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        return [("one", b"")]

    def assign(self, protocol_name: str, members: Sequence[JoinedMember]) -> Mapping[str, bytes]:
        return {member.member_id: b"something" for member in members}

    def on_assigned(self, generation: Generation, assignment: bytes) -> None:
        self._group.assigned(generation)
