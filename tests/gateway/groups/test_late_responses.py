"""Responses to heartbeats that come after their client was answered with an error."""

from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    ConsumerGroupHeartbeatAssignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicIdPartitions,
)
from streaming.gateway.groups.late_responses import LateResponses, combined


def heartbeat(epoch: int, member_id: str = "m") -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest("g", member_id, epoch)


def response(epoch: int, *partitions: int, error: Error = Error.NONE) -> ConsumerGroupHeartbeatResponse:
    assigned = ConsumerGroupHeartbeatAssignment([TopicIdPartitions("t", list(partitions))]) if partitions else None
    return ConsumerGroupHeartbeatResponse(error, member_id="m", member_epoch=epoch, assignment=assigned)


def test_a_late_response_answers_the_next_heartbeat_of_its_member_once() -> None:
    late = LateResponses()
    late.keep(heartbeat(3), response(4, 0, 1))
    assert late.take(heartbeat(3, "another")) is None
    assert late.take(heartbeat(3)) == response(4, 0, 1)
    assert late.take(heartbeat(3)) is None


def test_a_late_response_that_says_nothing_new_or_that_is_retriable_is_dropped() -> None:
    late = LateResponses()
    late.keep(heartbeat(3), response(3))
    late.keep(heartbeat(3), response(0, error=Error.COORDINATOR_NOT_AVAILABLE))
    assert late.take(heartbeat(3)) is None


def test_a_member_that_has_another_epoch_by_now_or_that_leaves_gets_no_late_response() -> None:
    for epoch in (0, 4, 5, -1, -2):
        late = LateResponses()
        late.keep(heartbeat(3), response(4, 0))
        assert late.take(heartbeat(epoch)) is None
        assert late.take(heartbeat(3)) is None


def test_late_responses_of_a_member_add_up() -> None:
    late = LateResponses()
    late.keep(heartbeat(3), response(4, 0, 1))
    late.keep(heartbeat(3), response(5))
    assert late.take(heartbeat(3)) == response(5, 0, 1)


def test_an_error_is_kept_for_the_epoch_that_it_is_about() -> None:
    late = LateResponses()
    fenced = response(0, error=Error.FENCED_MEMBER_EPOCH)
    late.keep(heartbeat(3), fenced)
    assert late.take(heartbeat(3)) == fenced


def test_a_later_error_and_a_later_assignment_replace_what_came_before() -> None:
    error = response(0, error=Error.UNKNOWN_MEMBER_ID)
    assert combined(response(4, 0), error) == error
    assert combined(response(4, 0), response(4, 1)) == response(4, 1)
    assert combined(None, response(4)) == response(4)
