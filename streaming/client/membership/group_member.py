"""A member of a group, which joins, follows rebalances, sends heartbeats and leaves as Kafka's clients do.

``group_protocol`` of its configuration chooses the protocol:

- ``classic``: a group of any protocol type, in which a leader assigns. The callbacks are :class:`MemberCallbacks`.
- ``consumer``: a consumer group, in which the coordinator assigns (KIP-848). The callbacks are
  :class:`PartitionCallbacks`.

**Threads.** :meth:`GroupMember.poll` does all the work of joining and calls the callbacks; call it frequently, from one
thread. A background thread sends heartbeats, and leaves the group if ``poll`` is not called for the rebalance timeout.
The next ``poll`` acts on the answers to heartbeats. Call ``leave`` and ``close`` on the polling thread, too. Only the
observer is called from several threads.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Self

from coordinator_logic.errors import Error
from streaming.client.coordinator_client import CoordinatorClient
from streaming.client.membership.classic_member import ClassicMember
from streaming.client.membership.consumer_groups.member import ConsumerGroupMember
from streaming.client.membership.consumer_groups.types import PartitionCallbacks
from streaming.client.membership.membership_state import Generation
from streaming.client.membership.types import (
    GroupProtocol,
    MemberCallbacks,
    MemberConfig,
    MemberEvent,
    MemberEventKind,
    Observer,
)

log = logging.getLogger(__name__)

_MEMBERS: Mapping[GroupProtocol, tuple[type, Callable[..., ClassicMember | ConsumerGroupMember]]] = {
    "classic": (MemberCallbacks, ClassicMember),
    "consumer": (PartitionCallbacks, ConsumerGroupMember),
}
"""The callbacks and the member of each protocol."""


class GroupMember:
    """A membership in one group. The first :meth:`poll` joins; :meth:`close` ends the membership for good.

    client: sends the requests; the member never closes it. callbacks: the application's part of the protocol.
    config: group, protocol and timeouts. observer: called with every :class:`MemberEvent`.

    Raises TypeError for callbacks of another protocol than the configuration's.
    """

    def __init__(
        self,
        client: CoordinatorClient,
        callbacks: MemberCallbacks | PartitionCallbacks,
        config: MemberConfig,
        observer: Observer | None = None,
    ) -> None:
        self.config = config
        self._observer = observer
        self._closed = False
        callbacks_type, member_type = _MEMBERS[config.group_protocol]
        if not isinstance(callbacks, callbacks_type):
            raise TypeError(f"{type(callbacks).__name__} has no callbacks for the protocol {config.group_protocol!r}")
        self._member: ClassicMember | ConsumerGroupMember = member_type(client, callbacks, config, self._observe)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    @property
    def generation(self) -> Generation:
        """The member's current identity. May be read from any thread."""
        return self._member.generation

    @property
    def rejoin_needed(self) -> bool:
        """Whether the next ``poll`` joins or rejoins."""
        return self._member.rejoin_needed

    def poll(self, timeout: float) -> bool:
        """Join or rejoin if needed, and follow changes of the assignment, for at most ``timeout`` seconds.

        Returns whether the member has its assignment. The next call continues what did not finish in time.

        Raises:
            FencedInstanceId: another process uses this member's instance id; every further call raises it again.
            UnreleasedInstanceId: another process has joined with this member's instance id before; the next call
                retries. With the protocol ``consumer`` only.
            CoordinatorError: the group refuses this member (e.g. INCONSISTENT_GROUP_PROTOCOL); the next call retries.
            RuntimeError: the member is closed.
        """
        if self._closed:
            raise RuntimeError(f"the member of group {self.config.group_id!r} is closed")
        return self._member.poll(timeout)

    def request_rejoin(self, reason: str) -> None:
        """Rejoin with the next ``poll``, e.g. since the member's metadata has changed. ``reason`` as in KIP-800.

        With the protocol ``consumer``, it has no effect: every ``poll`` reads the subscription anyway.
        """
        self._member.request_rejoin(reason)

    def leave(self, reason: str) -> None:
        """Give up the assignment and leave the group; a static member stays in it (KIP-345). ``poll`` rejoins.

        With the protocol ``consumer``, a static member leaves for a while: its partitions wait for it until its session
        ends. ``reason`` is for the classic protocol.
        """
        self._member.leave(reason)

    def close(self, reason: str = "the member is being closed") -> None:
        """Leave the group as :meth:`leave` does, and end the heartbeats. The client stays open."""
        if self._closed:
            return
        self._closed = True
        try:
            self.leave(reason)
        finally:
            self._member.end_heartbeats()

    def handle_error(self, error: Error, sent: Generation, api: str) -> None:
        """Apply an error answer to a request of ``api`` that was sent in the generation ``sent``.

        For requests that the application sends as this member, e.g. OffsetCommit. May be called from any thread.
        """
        self._member.handle_error(error, sent, api)

    def _observe(self, kind: MemberEventKind, generation: Generation, detail: str = "") -> None:
        log.debug("group %r: %s as %s %s", self.config.group_id, kind.value, generation, detail)
        if self._observer is not None:
            try:
                self._observer(MemberEvent(kind, self.config.group_id, generation, detail))
            except Exception:
                # An observer must not be able to stop the heartbeats.
                log.exception("the observer of group %r failed", self.config.group_id)
