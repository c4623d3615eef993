"""How long a new group takes until all its members have their assignment."""

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
"""Between the starts of groups of the same size, so that they do not all meet the same batch."""


def protocol_delay_ms(members: int) -> int:
    """How long the protocol has the first generation of an Empty group wait.

    The initial delay; once more when somebody joined during it.
    """
    delay = CoordinatorConfig().group_initial_rebalance_delay_ms
    return delay if members == 1 else 2 * delay


def measure_formation(client: CoordinatorClient, members: int, groups: int) -> Formation:
    """Form so many groups of so many members each. TimeoutError when one does not form."""
    delay_ms = protocol_delay_ms(members)
    forming = [_FormingGroup(client, f"forming-{uuid.uuid4().hex[:8]}", members) for _ in range(groups)]
    with ThreadPoolExecutor(groups) as pool:
        taken = []
        for group in forming:
            taken.append(pool.submit(group.form))
            time.sleep(APART_SECONDS)
        above = [future.result() * 1000 - delay_ms for future in taken]
    return Formation(members=members, delay_ms=delay_ms, above_delay_ms=[round(each, 1) for each in above])


class _FormingGroup:
    """A group whose members all join at once, each on a thread of its own."""

    def __init__(self, client: CoordinatorClient, group_id: str, size: int) -> None:
        self._client = client
        self._config = MemberConfig(group_id=group_id, protocol_type="bench")
        self._size = size
        self._lock = threading.Lock()
        self._assigned: Counter[int] = Counter()
        self._formed = threading.Event()
        self._formed_at = 0.0

    def assigned(self, generation: Generation) -> None:
        """A member has its assignment. A generation that began without all members is not the one."""
        with self._lock:
            self._assigned[generation.generation_id] += 1
            if self._assigned[generation.generation_id] == self._size and not self._formed.is_set():
                self._formed_at = time.perf_counter()
                self._formed.set()

    def form(self) -> float:
        """Let the members join, then leave; the seconds from the first to the last."""
        begin = time.perf_counter()
        with ThreadPoolExecutor(self._size) as pool:
            for done in [pool.submit(self._be_a_member) for _ in range(self._size)]:
                done.result()
        return self._formed_at - begin

    def _be_a_member(self) -> None:
        deadline = time.monotonic() + FORMATION_LIMIT_SECONDS
        with GroupMember(self._client, _Assignee(self), self._config) as member:
            while not self._formed.is_set():
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{self._config.group_id} has not formed in {FORMATION_LIMIT_SECONDS:.0f} s")
                if member.poll(POLL_SECONDS):
                    self._formed.wait(POLL_SECONDS)


class _Assignee(MemberCallbacks):
    """A member that follows the one protocol there is, and tells its group when it has been assigned something."""

    def __init__(self, group: _FormingGroup) -> None:
        self._group = group

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        return [("one", b"")]

    def assign(self, protocol_name: str, members: Sequence[JoinedMember]) -> Mapping[str, bytes]:
        return {member.member_id: b"something" for member in members}

    def on_assigned(self, generation: Generation, assignment: bytes) -> None:
        self._group.assigned(generation)
