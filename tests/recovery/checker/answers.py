"""Answers: a request has one answer, which repeats byte for byte, and it is the request's own and of the newest job."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from tests.recovery.checker.history import Function
from tests.recovery.checker.operations import Operation, Rule, Violation, grouped, lines_of


def check_answers(operations: Sequence[Operation]) -> Iterator[Violation]:
    """Check the answers by correlation id, each against its request, and the order of the jobs that answer."""
    hashed = (o for o in operations if o.answer.correlation_id and o.answer.answer)
    for correlation_id, same in grouped(hashed, lambda o: o.answer.correlation_id).items():
        changed = next((o for o in same if o.answer.answer != same[0].answer.answer), None)
        if changed is not None:
            what = f"the answer {correlation_id} came with different bytes"
            yield Violation(Rule.SAME_ANSWER, changed.call.group, what, lines_of(same[0], changed))
    for operation in operations:
        foreign = _of_another(operation)
        if foreign is not None:
            yield Violation(Rule.OWN_ANSWER, operation.call.group, foreign, operation.lines)
    for former, later in pairwise(o for o in operations if o.answer.job_epoch):
        if later.answer.job_epoch < former.answer.job_epoch:
            what = f"an answer of epoch {later.answer.job_epoch} was taken after one of epoch {former.answer.job_epoch}"
            yield Violation(Rule.NEWEST_JOB, later.call.group, what, lines_of(former, later))


def _of_another(operation: Operation) -> str | None:
    """What shows that the answer belongs to another request; None if nothing does."""
    call, answer = operation.call, operation.answer
    if call.correlation_id and answer.correlation_id != call.correlation_id:
        return f"{call.f} {call.correlation_id} got the answer {answer.correlation_id}"
    if call.member and answer.member != call.member:
        return f"{call.f} of {call.member} got an answer for {answer.member}"
    if operation.is_ok and call.f in (Function.COMMIT, Function.RESET, Function.FETCH):
        foreign = set(operation.keys) - {position.key for position in call.value}
        if foreign and call.value:
            return f"{call.f} got an answer about partitions that it did not name: {sorted(foreign)}"
    return None
