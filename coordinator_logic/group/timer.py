"""A timer of a group, and what the rules of time need to know of it."""

from enum import IntEnum

import msgspec

HEARTBEAT = "heartbeat"
"""The kind of a member's session, and of the time in which a handed-out member id must be used; every type has it."""
EXPIRY = "expiry"
"""The kind of the next look for expired offsets; every group has it."""


class Effect(IntEnum):
    """What a timer does when it fires, as far as the rules of time differ. A snapshot holds the number."""

    REMOVES_MEMBERS = 0
    """A request that was appended before the deadline could be read too late to prevent it."""
    COMPLETES_JOIN = 1
    """It answers members that could send no heartbeat before, and removes those that did not join."""
    ENDS_DELAY = 2
    """It answers members, and removes nothing."""
    EXPIRES_OFFSETS = 3
    """It removes no member, but offsets that a request could have renewed."""

    @property
    def can_remove_members(self) -> bool:
        """Whether it can remove a member from the group."""
        # By identity: this runs for every timer at every step, and hashing an Enum is slow.
        return self is Effect.REMOVES_MEMBERS or self is Effect.COMPLETES_JOIN

    @property
    def has_allowance(self) -> bool:
        """Whether it waits ``expiry.allowance.ms`` longer when no request follows its deadline."""
        return self is not Effect.ENDS_DELAY

    @property
    def answers_joins(self) -> bool:
        """Whether it answers members whose join waits."""
        return self is Effect.COMPLETES_JOIN or self is Effect.ENDS_DELAY


class Timer(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A deadline: ``timeout_ms`` after ``armed_at`` (ms since the epoch).

    ``kind`` says what it is for; each type has its own kinds beside those of this module. ``member_id`` is the owner of
    the session, or the member that must do something, ``generation`` the generation or epoch that must sync or end,
    ``remaining_ms`` how much a delay may still be extended.
    """

    kind: str
    armed_at: int
    timeout_ms: int
    member_id: str = ""
    generation: int = 0
    remaining_ms: int = 0
    effect: Effect = Effect.REMOVES_MEMBERS

    def deadline(self, started_at: int) -> int:
        """The time at which it is due, given the coordinator's last start (both ms since the epoch).

        A start gives every member a full timeout, as when a broker loads a group: no heartbeat could reach the
        coordinator while it was down.
        """
        armed_at = self.armed_at
        if armed_at < started_at and self.effect.can_remove_members:
            armed_at = started_at
        return armed_at + self.timeout_ms
