"""Sessions of members of the consumer group protocol: one that keeps its heartbeats is neither removed nor fenced.

Only heartbeats keep a session, and only those that are accepted. One without an answer was so if it was appended with
the epoch that the member had: the journal says which heartbeats have changed it. A member that was removed because it
did not revoke in time is left to the rules of the journal.
"""

from collections.abc import Iterator, Sequence
from math import inf

from coordinator_logic.errors import Error
from coordinator_logic.groups.consumer.epochs import JOIN_EPOCH
from tests.recovery.checker.consumer_groups.story import ConsumerStory
from tests.recovery.checker.history import Function, Kind
from tests.recovery.checker.operations import NS_PER_MS, Operation, Rule, Violation, grouped, lines_of
from tests.recovery.checker.sessions import Contact, lived_until


def check_sessions_of_reconciling(
    operations: Sequence[Operation], story: ConsumerStory, outages: Sequence[Contact], *, has_journal: bool
) -> Iterator[Violation]:
    """Check every member of the consumer group protocol that was told that it is unknown or fenced."""
    heartbeats = [o for o in operations if o.f is Function.CONSUMER_HEARTBEAT]
    names = {(o.call.group, o.call.member) for o in heartbeats}
    own = (o for o in operations if o.f in (Function.CONSUMER_HEARTBEAT, Function.COMMIT))
    joins = grouped(
        (o for o in operations if o.joins and o.call.instance is not None), lambda o: (o.call.group, o.call.instance)
    )
    for (group, name), of_member in grouped(own, lambda o: (o.call.group, o.call.member)).items():
        if (group, name) in names:
            of_instance = joins.get((group, of_member[0].call.instance), [])
            yield from _Session(story, outages, of_instance, has_journal=has_journal).check(of_member)


class _Session:
    """A member while its requests are gone through in the order in which they were appended."""

    def __init__(
        self, story: ConsumerStory, outages: Sequence[Contact], joins: Sequence[Operation], *, has_journal: bool
    ) -> None:
        self._story = story
        self._outages = outages
        self._joins = joins
        self._has_journal = has_journal
        self._epoch: int | None = None
        self._contacts: list[Operation] = []

    def check(self, requests: Sequence[Operation]) -> Iterator[Violation]:
        for request in requests:
            if request.error is Error.UNKNOWN_MEMBER_ID and self._lived(request):
                what = f"{request.call.member} kept its session and was answered UNKNOWN_MEMBER_ID"
                yield self._violation(what, request)
            if request.f is not Function.CONSUMER_HEARTBEAT:
                continue
            is_own_epoch = self._epoch is not None and request.call.generation == self._epoch
            if request.error is Error.FENCED_MEMBER_EPOCH and is_own_epoch:
                yield self._violation(f"{request.call.member} was fenced in its own epoch {self._epoch}", request)
            self._follow(request, is_own_epoch=is_own_epoch)

    def _violation(self, what: str, request: Operation) -> Violation:
        return Violation(Rule.LIVE_MEMBERS_STAY, request.call.group, what, lines_of(*self._contacts, request))

    def _lived(self, unknown: Operation) -> bool:
        """Whether the member's session had surely not ended."""
        if not self._contacts or self._story.is_late(unknown.call.member):
            return False
        first, *further = self._contacts
        taken_over = (
            o.call.member != unknown.call.member and o.called < unknown.returned and o.returned > first.called
            for o in self._joins
        )
        if any(taken_over):
            return False
        session = first.call.session_ms * NS_PER_MS
        contacts = [Contact(operation.called, operation.appended) for operation in further]
        return unknown.appended < lived_until(first.called, session, [*contacts, *self._outages])

    def _follow(self, request: Operation, *, is_own_epoch: bool) -> None:
        """Take a heartbeat into account."""
        if request.leaves or request.error in (Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID):
            self._epoch, self._contacts = None, []
        elif request.is_ok:
            # Whoever is accepted is a member: what was before does not matter.
            self._epoch, self._contacts = request.answer.generation, [request]
        elif request.kind is Kind.INFO:
            if is_own_epoch and request.appended < inf and request.call.generation > JOIN_EPOCH:
                self._contacts.append(request)
            unknown = None if not self._has_journal or self._epoch is None else self._epoch
            changed = self._story.standings_after.get(request.call.correlation_id)
            self._epoch = unknown if changed is None else changed.epoch
