"""Timeouts for handlers under test, so that no result depends on the machine's speed."""

from streaming.gateway.groups.timeout_policies import GroupTimeouts

__all__ = ["response_timeouts"]

LONG_SECONDS = 120.0


def response_timeouts(seconds: float = LONG_SECONDS) -> GroupTimeouts:
    """Wait ``seconds`` for the coordinator's responses, and long for the broker's.

    A heartbeat's response still counts when it comes after that.
    """
    return GroupTimeouts(
        consumer_seconds=seconds,
        request_seconds=seconds,
        leave_seconds=seconds,
        join_margin_seconds=0.0,
        late_heartbeat_seconds=LONG_SECONDS,
        late_deletion_seconds=LONG_SECONDS,
        stall_seconds=LONG_SECONDS,
        topic_lookup_seconds=LONG_SECONDS,
        topic_refresh_seconds=LONG_SECONDS,
    )
