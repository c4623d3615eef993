"""Members over topics: each keeps its membership and commits for a partition of its own."""

import threading
import time
from collections.abc import Mapping, Sequence

from coordinator_logic.messages import JoinedMember
from streaming.client import (
    CoordinatorClient,
    CoordinatorError,
    Generation,
    GroupMember,
    MemberCallbacks,
    MemberConfig,
    MemberEvent,
    MemberEventKind,
)
from streaming.drills.clients.offsets import Ledger, commit
from streaming.drills.recording import NoticeKind, Recording

SESSION_TIMEOUT_MS = 10_000
"""The shortest that is usual; a restart may take longer, and nobody may be expelled for it."""

HEARTBEAT_INTERVAL_MS = 1_000
COMMIT_SECONDS = 0.5
POLL_SECONDS = 0.1


class EvenShares(MemberCallbacks):
    """The callbacks of a member whose assignment is its own name."""

    def __init__(self) -> None:
        self.generation = Generation()

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        """One protocol, without metadata."""
        return [("drill", b"")]

    def assign(self, protocol_name: str, members: Sequence[JoinedMember]) -> Mapping[str, bytes]:
        """Give each member its own id."""
        return {member.member_id: member.member_id.encode() for member in members}

    def on_assigned(self, generation: Generation, assignment: bytes) -> None:
        """Note the generation in which the member has its assignment."""
        self.generation = generation


class LiveClient(threading.Thread):
    """A client that works until :meth:`stop`, and records whatever it notices from :meth:`watch` on."""

    def __init__(self, name: str, group: str, recording: Recording, ledger: Ledger) -> None:
        super().__init__(name=name, daemon=True)
        self.group = group
        self._recording = recording
        self._ledger = ledger
        self._stopping = threading.Event()
        self._is_watched = False

    def watch(self, watched: bool = True) -> None:
        """Record what the client notices from now on, or no longer."""
        self._is_watched = watched

    def stop(self) -> None:
        """End the thread; the client leaves its group."""
        self._stopping.set()

    def _notice(self, kind: NoticeKind, text: str) -> None:
        if self._is_watched:
            self._recording.notice(self.name, kind, text)


class LiveMember(LiveClient):
    """A member that polls, and commits for a partition."""

    def __init__(
        self, client: CoordinatorClient, recording: Recording, ledger: Ledger, group: str, partition: int
    ) -> None:
        super().__init__(f"{group}-{partition}", group, recording, ledger)
        self._client = client
        self._partition = partition
        self._callbacks = EvenShares()
        config = MemberConfig(
            group_id=group,
            protocol_type="drill",
            session_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
        )
        self._member = GroupMember(client, self._callbacks, config, self._on_event)

    @property
    def assigned_in(self) -> int | None:
        """The generation in which it has its assignment; None while it joins."""
        generation = self._callbacks.generation
        return generation.generation_id if generation == self._member.generation and generation.is_member else None

    def run(self) -> None:
        offset, due = 0, time.monotonic()
        while not self._stopping.wait(POLL_SECONDS):
            try:
                if self._member.poll(POLL_SECONDS) and time.monotonic() >= due:
                    due = time.monotonic() + COMMIT_SECONDS
                    offset += 1
                    self._commit(offset)
            except CoordinatorError as failure:
                self._notice("error", str(failure))
        self._is_watched = False
        try:
            self._member.close()
        except CoordinatorError as failure:
            self._notice("error", str(failure))

    def _commit(self, offset: int) -> None:
        answered = commit(self._client, self.group, {self._partition: offset}, self._member.generation)
        if error := self._ledger.outcome((self.group, self._partition), offset, answered):
            self._notice("error", f"commit: {error}")

    def _on_event(self, event: MemberEvent) -> None:
        if event.kind in (MemberEventKind.LOST, MemberEventKind.FENCED):
            self._notice("expelled", event.detail)
        elif event.kind is MemberEventKind.JOINING:
            self._notice("rejoin", event.detail)
