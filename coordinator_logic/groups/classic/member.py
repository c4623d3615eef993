"""A member of a classic group."""

import msgspec

from coordinator_logic.events import ReplyAddress
from coordinator_logic.messages.membership import Protocol


class Member(msgspec.Struct, array_like=True):
    """A member of a classic group. Its protocols are in order of preference."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: list[Protocol]
    assignment: bytes = b""
    is_new: bool = True
    parked_join: ReplyAddress | None = None
    parked_sync: ReplyAddress | None = None

    @property
    def is_static(self) -> bool:
        """Whether it has an instance id (KIP-345), and so keeps its place when its process restarts."""
        return self.group_instance_id is not None

    @property
    def is_exempt_from_expiry(self) -> bool:
        """Whether its session cannot expire, because it waits for an answer of the coordinator.

        A new member is not exempt: if its first join takes longer than ``NEW_MEMBER_JOIN_TIMEOUT_MS``, its client
        has probably gone.
        """
        return not self.is_new and (self.parked_join is not None or self.parked_sync is not None)

    def metadata_for(self, protocol_name: str | None) -> bytes:
        """Its metadata for a protocol; empty if it does not support the protocol."""
        return next((p.metadata for p in self.protocols if p.name == protocol_name), b"")

    def lists_same_protocols(self, protocols: list[Protocol]) -> bool:
        """Whether these are its protocols: same names, same metadata, same order."""
        return self.protocols == protocols
