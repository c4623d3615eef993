"""Exhaustive tests of committed offsets: commits, transactions, expiry and deletion.

The search has at most one member, a topic to which it subscribes, another topic, and one producer with two epochs. It
covers all that an offset depends on: the group's state and subscription, the age of the offset, open transactions.
:func:`offsets_after` and :func:`unexpired` compute the expected offsets independently of the handlers. Offsets of two
topics affect each other only when the group is deleted, so the searches with transactions have one topic each.
"""

from collections.abc import Hashable, Iterable, Iterator
from functools import cache

import pytest

from coordinator_logic.committed_offsets import CommittedOffset, Offsets
from coordinator_logic.embedded_protocols import Subscription, encode_subscription
from coordinator_logic.errors import Error
from coordinator_logic.group import Group
from coordinator_logic.group.timer import EXPIRY
from coordinator_logic.group.transactions import OpenTransaction
from coordinator_logic.messages import (
    DeleteGroupsRequest,
    GroupToFetch,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    LeavingMember,
    MemberAssignment,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    OffsetFetchResponse,
    PartitionToCommit,
    PartitionToDelete,
    Protocol,
    SyncGroupRequest,
    TopicsDeletedRequest,
    TopicToCommit,
    TopicToDelete,
    TopicToFetch,
    TxnMarker,
    TxnOffsetCommitRequest,
    TxnPartitionToCommit,
    TxnTopicToCommit,
    WriteTxnMarkersRequest,
)
from coordinator_logic.records import GroupDeleted, OffsetRecord
from coordinator_logic.states import State
from tests.logic.exhaustive.extent import covered
from tests.logic.exhaustive.moves import Move, move
from tests.logic.exhaustive.scope import GROUP_ID, UNIT_MS, Scope
from tests.logic.exhaustive.search import ConcreteState, Search
from tests.logic.invariants import Step
from tests.support.parts import classic

READ, OTHER = "read", "other"
PRODUCER = 7
EPOCHS = (0, 1)
RETENTION = 3
"""The retention time in units of the clock: five minutes."""

SCOPE = Scope(room=1, session=2, rebalance=1, delay=0, retention_minutes=RETENTION * UNIT_MS // 60_000)
SUBSCRIPTION = Protocol("range", encode_subscription(Subscription([READ])))

Topics = tuple[str, ...]


def offset_moves(group: Group | None, topics: Topics, epochs: tuple[int, ...]) -> Iterator[Move]:
    """Yield every request that can change offsets, and those that take the group through its states."""
    yield from _members(group)
    yield from _commits(group, topics)
    yield from _transactions(group, topics, epochs)
    yield from _deletions(group, topics)


def _transactions(group: Group | None, topics: Topics, epochs: tuple[int, ...]) -> Iterator[Move]:
    sequence = group.sequence if group is not None else 0
    open_epoch = (
        group.open_transactions[PRODUCER].producer_epoch if group is not None and group.open_transactions else 0
    )
    for epoch in epochs:
        expected = "0" if epoch >= open_epoch else "47"
        for topic in topics:
            body = _in_transaction(topic, sequence, epoch)
            yield move(f"{topic} in a transaction of epoch {epoch}", "TxnOffsetCommit", 5, body, expected)
        for result, word in ((True, "committed"), (False, "aborted")):
            marker = WriteTxnMarkersRequest([TxnMarker(PRODUCER, epoch, result)])
            yield move(f"epoch {epoch} is {word}", "WriteTxnMarkers", 1, marker, expected)


def _deletions(group: Group | None, topics: Topics) -> Iterator[Move]:
    for topic in topics:
        offsets = OffsetDeleteRequest(GROUP_ID, [TopicToDelete(topic, [PartitionToDelete(0)])])
        is_read = group is not None and bool(classic(group).members) and topic == READ
        expected = "69" if group is None else "86" if is_read else "0"
        yield move(f"the offset of {topic} is deleted", "OffsetDelete", 0, offsets, expected)
        yield move(f"{topic} is deleted", "TopicsDeleted", 0, TopicsDeletedRequest([topic]), "0")
    expected = "69" if group is None else "0" if group.state is State.EMPTY else "68"
    yield move("the group is deleted", "DeleteGroups", 2, DeleteGroupsRequest([GROUP_ID]), expected)


def _members(group: Group | None) -> Iterator[Move]:
    if group is None or not classic(group).members:
        join = JoinGroupRequest(GROUP_ID, 2 * UNIT_MS, "consumer", [SUBSCRIPTION], UNIT_MS)
        yield move("a member joins", "JoinGroup", 3, join, "join")
        return
    (member,) = classic(group).members
    generation = group.generation
    assignments = [MemberAssignment(member, f"generation {generation}".encode())]
    sync = SyncGroupRequest(GROUP_ID, generation, member, None, "consumer", "range", assignments)
    preparing = group.state is State.PREPARING_REBALANCE
    yield move("it syncs", "SyncGroup", 5, sync, "27" if preparing else "0")
    heartbeat = HeartbeatRequest(GROUP_ID, generation, member)
    yield move("it heartbeats", "Heartbeat", 4, heartbeat, "27" if preparing else "0")
    yield move("it leaves", "LeaveGroup", 5, LeaveGroupRequest(GROUP_ID, members=[LeavingMember(member)]), "0")
    rejoin = JoinGroupRequest(GROUP_ID, 2 * UNIT_MS, "consumer", [SUBSCRIPTION], UNIT_MS, member)
    yield move("it rejoins", "JoinGroup", 9, rejoin, "0" if group.state is State.COMPLETING_REBALANCE else "join")


def _commits(group: Group | None, topics: Topics) -> Iterator[Move]:
    sequence = group.sequence if group is not None else 0
    in_use = group is not None and group.state is not State.EMPTY
    completing = group is not None and group.state is State.COMPLETING_REBALANCE
    for topic in topics:
        anonymous = _commit(topic, sequence)
        yield move(f"{topic}, anonymously", "OffsetCommit", 9, anonymous, "25" if in_use else "0")
        for member in classic(group).members if group is not None else ():
            assert group is not None
            by_member = _commit(topic, sequence, group.generation, member)
            yield move(f"{topic} by the member", "OffsetCommit", 9, by_member, "27" if completing else "0")
    if not in_use and OTHER in topics:
        short = _commit(OTHER, sequence, retention=UNIT_MS)
        yield move("other for one unit", "OffsetCommit", 4, short, "0")


def _commit(
    topic: str, offset: int, generation: int = -1, member: str = "", retention: int = -1
) -> OffsetCommitRequest:
    topics = [TopicToCommit(topic, [PartitionToCommit(0, offset)])]
    return OffsetCommitRequest(GROUP_ID, topics, generation, member, None, retention)


def _in_transaction(topic: str, offset: int, epoch: int) -> TxnOffsetCommitRequest:
    topics = [TxnTopicToCommit(topic, [TxnPartitionToCommit(0, offset)])]
    return TxnOffsetCommitRequest("transaction", GROUP_ID, PRODUCER, epoch, topics)


def offset_refusals(group: Group | None) -> Iterator[Move]:
    """Yield requests that change nothing in any state: fetches and invalid requests."""
    without_group = OffsetDeleteRequest("", [])
    yield move("a deletion without a group id", "OffsetDelete", 0, without_group, "24")
    unknown_member = TxnOffsetCommitRequest("t", GROUP_ID, 8, 0, [_txn_topic()], 1, "unknown")
    yield move(
        "a transaction of an unknown member", "TxnOffsetCommit", 5, unknown_member, "22" if group is None else "25"
    )
    no_group = TxnOffsetCommitRequest("t", "", 8, 0, [_txn_topic()])
    yield move("a transaction without a group id", "TxnOffsetCommit", 5, no_group, "24")
    for stable in (False, True):
        wanted = [GroupToFetch(GROUP_ID, [TopicToFetch(topic, [0]) for topic in (READ, OTHER)])]
        yield move(
            f"a fetch, stable: {stable}",
            "OffsetFetch",
            9,
            OffsetFetchRequest(groups=wanted, require_stable=stable),
            "0",
        )
    for member in classic(group).members if group is not None else ():
        assert group is not None
        stale = TxnOffsetCommitRequest("t", GROUP_ID, 8, 0, [_txn_topic()], group.generation + 1, member)
        yield move("a transaction of another generation", "TxnOffsetCommit", 5, stale, "22")
    yield move(
        "a marker of an unknown transaction", "WriteTxnMarkers", 1, WriteTxnMarkersRequest([TxnMarker(8, 0, True)]), "0"
    )


def _txn_topic() -> TxnTopicToCommit:
    return TxnTopicToCommit(READ, [TxnPartitionToCommit(0, 1)])


# ---- the expected offsets -------------------------------------------------------------------------------------

Model = dict[str, tuple[int, int, int | None]]
"""By topic: the offset, the time of its commit, and the requested time of expiry (ms since the epoch)."""


def plain(offsets: Offsets) -> Model:
    """Convert offsets to the model."""
    return {
        topic: (entry.offset, entry.commit_timestamp, entry.expire_timestamp)
        for topic, partitions in offsets.items()
        for entry in partitions.values()
    }


def offsets_after(step: Step, last_move: Move | None) -> tuple[Model, Model]:
    """Return the expected committed and pending offsets after a move, or after time has passed."""
    before = step.before
    committed = plain(before.offsets) if before is not None else {}
    transaction = before.open_transactions.get(PRODUCER) if before is not None else None
    pending = plain(transaction.offsets) if transaction is not None else {}
    now = step.batch_time
    match (
        last_move.body
        if last_move is not None and not last_move.expected & {"25", "27", "47", "68", "69", "86"}
        else None
    ):
        case OffsetCommitRequest(topics=[topic], retention_time_ms=retention):
            expires = None if retention < 0 else now + retention
            committed[topic.name] = (topic.partitions[0].committed_offset, now, expires)
        case TxnOffsetCommitRequest(topics=[TxnTopicToCommit() as topic]):
            pending[topic.name] = (topic.partitions[0].committed_offset, now, None)
        case WriteTxnMarkersRequest(markers=[marker]):
            if marker.transaction_result:
                # In this search an offset is the sequence number of its commit, so the greater one is newer.
                committed |= {t: p for t, p in pending.items() if t not in committed or p[0] > committed[t][0]}
            pending = {}
        case OffsetDeleteRequest(topics=[TopicToDelete(name=deleted)]) | TopicsDeletedRequest(topics=[deleted]):
            committed.pop(deleted, None)
            pending.pop(deleted, None)
        case DeleteGroupsRequest():
            return {}, {}
        case None:
            pass
    return committed, pending


def unexpired(before: Group, committed: Model, pending: Model, now: int) -> Model:
    """Return the committed offsets that have not expired, for a group whose state has not changed."""
    empty = before.state is State.EMPTY
    stable = before.state is State.STABLE and classic(before).subscribed_topics is not None
    if not empty and not stable:
        return committed
    since_empty = before.part.state_timestamp if empty and before.part.protocol_type is not None else None

    def is_expired(topic: str, position: tuple[int, int, int | None]) -> bool:
        if topic in pending or (stable and topic in (classic(before).subscribed_topics or ())):
            return False
        _, commit_timestamp, expires = position
        base = commit_timestamp if since_empty is None else since_empty
        return now >= (expires if expires is not None else base + RETENTION * UNIT_MS)

    return {topic: position for topic, position in committed.items() if not is_expired(topic, position)}


class OffsetSearch(Search):
    """A search in which offsets distinguish states, too."""

    def __init__(self, topics: Topics, epochs: tuple[int, ...], at_most: int = 20_000) -> None:
        super().__init__(SCOPE, at_most)
        self.topics = topics
        self.epochs = epochs

    def moves(self, group: Group | None) -> Iterable[Move]:
        return offset_moves(group, self.topics, self.epochs)

    def refusals(self, group: Group | None) -> Iterable[Move]:
        return offset_refusals(group)

    def key(self, group: Group | None, current: ConcreteState) -> Hashable:
        if group is None:
            return super().key(group, current)
        transaction = group.open_transactions.get(PRODUCER)
        topics = classic(group).subscribed_topics
        return (
            super().key(group, current),
            group.part.protocol_type,
            None if topics is None else tuple(topics),
            group.state is State.EMPTY and group.part.protocol_type and _age(group.part.state_timestamp, current.now),
            tuple(_offset_key(group, topic, transaction, current.now) for topic in self.topics),
            transaction and transaction.producer_epoch,
        )

    def check(self, step: Step, last_move: Move | None) -> None:
        super().check(step, last_move)
        committed, pending = offsets_after(step, last_move)
        group = step.result.group
        transaction = group.open_transactions.get(PRODUCER) if group is not None else None
        if last_move is None and step.before is not None:
            if group is not None and group.state is not step.before.state:
                # A session has expired in the same step: the state at the time of the expiry is unknown.
                return
            committed = unexpired(step.before, committed, pending, step.batch_time)
        assert (plain(group.offsets) if group is not None else {}) == committed
        assert (plain(transaction.offsets) if transaction is not None else {}) == pending

    def check_unchanged(self, step: Step) -> None:
        """Check that a fetch returns committed offsets, and if they must be stable, an error for open transactions."""
        group = step.before
        committed = plain(group.offsets) if group is not None else {}
        for response in step.result.responses:
            if not isinstance(response.body, OffsetFetchResponse):
                continue
            fetch = next(r.body for r in step.requests if r.address == response.address)
            assert isinstance(fetch, OffsetFetchRequest)
            for topic in response.body.groups[0].topics:
                (partition,) = topic.partitions
                is_open = fetch.require_stable and group is not None and group.has_pending_offset(topic.name, 0)
                offset = -1 if is_open or topic.name not in committed else committed[topic.name][0]
                error = Error.UNSTABLE_OFFSET_COMMIT if is_open else Error.NONE
                assert (partition.committed_offset, partition.error_code) == (offset, error)
                self.reached.answers.add(("OffsetFetch", error))


def _age(timestamp: int, now: int) -> int:
    """Return the age in units of the clock; all ages beyond the retention time are equal."""
    return min((now - timestamp) // UNIT_MS, RETENTION + 1)


def _offset_key(group: Group, topic: str, transaction: OpenTransaction | None, now: int) -> Hashable:
    committed = group.offsets.get(topic, {}).get(0)
    pending = transaction.offsets.get(topic, {}).get(0) if transaction is not None else None
    newer = committed is not None and pending is not None and pending.sequence > committed.sequence
    return (committed and _ages(committed, now), pending and _ages(pending, now), newer)


def _ages(offset: CommittedOffset, now: int) -> Hashable:
    remaining = None if offset.expire_timestamp is None else max(offset.expire_timestamp - now, 0)
    return (_age(offset.commit_timestamp, now), remaining)


# ---- the tests -------------------------------------------------------------------------------------------------


SEARCHES: dict[str, tuple[Topics, tuple[int, ...]]] = covered(
    {"subscribed topic": ((READ,), (0, 1)), "both topics": ((READ, OTHER), ())},
    {"other topic": ((OTHER,), (0, 1))},
)
ANSWERS = {
    "OffsetCommit": {0, 25, 27},
    "OffsetDelete": {0, 24, 69, 86},
    "TxnOffsetCommit": {0, 22, 24, 25, 47},
    "WriteTxnMarkers": {0, 47},
    "TopicsDeleted": {0},
    "OffsetFetch": {0, 88},
    "DeleteGroups": {0, 68, 69},
}
"""The error codes of the offset APIs in these searches; the others are in :mod:`.test_small_groups`."""


@cache
def explored(name: str) -> OffsetSearch:
    """Run a search; each runs once."""
    return OffsetSearch(*SEARCHES[name]).run()


@pytest.mark.parametrize("name", SEARCHES)
def test_every_move_in_every_state_leaves_the_expected_offsets(name: str) -> None:
    assert {None, State.EMPTY, State.COMPLETING_REBALANCE, State.STABLE} <= explored(name).reached.states


def test_every_error_and_every_record_of_offsets_is_reached() -> None:
    answers: dict[str, set[Error]] = {}
    records: set[type] = set()
    for name in SEARCHES:
        records |= explored(name).reached.records
        for api, error in explored(name).reached.answers:
            answers.setdefault(api, set()).add(error)
    assert ANSWERS.items() <= answers.items()
    assert records >= {*OffsetRecord.__args__, GroupDeleted}
    assert EXPIRY in explored("both topics").reached.timers
