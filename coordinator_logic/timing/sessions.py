"""Late answers: a member whose JoinGroup was answered late gets a full session from the batch after the answer.

A member sends heartbeats only after it has the answer to its JoinGroup. The answer leaves when the batch that decided
it ends, but the session already counts from the join. If that batch takes long, most of the session is over before
the member can send anything. So a group that answered a JoinGroup asks to be called in the very next batch. The job
starts that batch one trigger interval after the last one, or as soon as the last one has ended. If it starts later
than ``late.answer.ms`` after the last one, the answer was late, and sessions count from it, as after a restart.
"""

from collections.abc import Iterable

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.events import Response
from coordinator_logic.group import Group
from coordinator_logic.handler import HANDLERS

NEVER_LATE_MS = 2_000
"""A delay up to this is never late: a third of the shortest session that Kafka allows by default (6 s)."""

SCHEDULING_MARGIN_MS = 1_000
"""How much later than its trigger interval a batch may start without being late.

A batch that is on time starts up to a few hundred ms after its interval. With an interval of 2 s a margin of 1 s still
leaves a member a second of the shortest session: 2 s until its JoinGroup is read, 3 s until it has the answer.
"""


def late_answer_ms(batch_interval_ms: int) -> int:
    """The bound for a job that starts a batch every ``batch_interval_ms``: the value of ``late.answer.ms``."""
    return max(NEVER_LATE_MS, batch_interval_ms + SCHEDULING_MARGIN_MS)


def renew_sessions_after_late_answer(group: Group, batch_time: int, config: CoordinatorConfig) -> None:
    """Let sessions count from this batch (ms) if the batch before it answered a JoinGroup and the answer was late.

    Call it before anything else happens to the group in the batch; calling it again in the same batch changes nothing.
    """
    answered_at = group.join_answered_at
    if not answered_at or answered_at >= batch_time:
        return
    bound = config.late_answer_ms
    if bound is not None and batch_time - answered_at > bound:
        group.sessions_from = batch_time
    group.join_answered_at = 0


def remember_join_answers(
    group: Group, responses: Iterable[Response], batch_time: int, config: CoordinatorConfig
) -> bool:
    """Note whether the batch answers a JoinGroup; whether the group must therefore be called in the next batch."""
    if config.late_answer_ms is None:
        return False
    for response in responses:
        starts_session = HANDLERS[response.address.api].starts_session
        if starts_session is not None and starts_session(response):
            group.join_answered_at = batch_time
            break
    return group.join_answered_at == batch_time
