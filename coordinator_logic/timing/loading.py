"""Load a group that was folded from its journal: the working memory that records do not hold.

A broker that loads a group knows what the group's last record says. It gives every member a full session, so that those
that are gone expire, and it has forgotten the requests that were parked: their clients ask again. Source: ``onLoaded``
in Kafka's ``GroupMetadataManager``. What a type does then is in its
room.
"""

from collections.abc import Sequence

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.events import Request
from coordinator_logic.group import Group
from coordinator_logic.group.timer import HEARTBEAT, Timer
from coordinator_logic.groups.group_type import type_of
from coordinator_logic.offsets.expiry import schedule
from coordinator_logic.turn import FiredTimer, Output, Turn


def load(group: Group, now: int, config: CoordinatorConfig) -> None:
    """Give a group the working memory of one that was loaded at ``now``, ms since the epoch.

    What it had is dropped: parked requests, handed-out member ids, timers.
    """
    now = max(now, group.clock)
    group.timers = {}
    group.join_answered_at = group.checked_until = group.next_check_at = group.append_distance = 0
    group.clock = group.sessions_from = now
    # No record is made, so the turn's origin is not used.
    turn = Turn(group.group_id, group, now, FiredTimer(Timer(HEARTBEAT, now, 0), now), config, Output())
    type_of(group).load(turn)
    schedule(turn)


def without_applied(group: Group, requests: Sequence[Request]) -> Sequence[Request]:
    """The requests that the journal from which the group was rebuilt does not name.

    The group forgets the bound of a partition when it gets a request behind it: earlier ones cannot follow.
    """
    bounds = group.applied_until
    new = [request for request in requests if request.place.offset >= bounds.get(request.place.partition, 0)]
    if new:
        passed = {request.place.partition for request in new}
        group.applied_until = {partition: end for partition, end in bounds.items() if partition not in passed}
    return new
