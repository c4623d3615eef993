"""A group that is rebuilt from its journal and loaded: its timers, and the requests that it leaves out."""

from coordinator_logic import snapshot
from coordinator_logic.errors import Error
from coordinator_logic.group import Group
from coordinator_logic.records import fold
from coordinator_logic.states import State
from coordinator_logic.timing.loading import load
from tests.logic.driver import DELAY_MS, REBALANCE_MS, SESSION_MS, Driven, joined
from tests.support.parts import classic


def reload(driven: Driven, applied: int | None = None) -> Group:
    """Replace the driven group by one from its journal, loaded now; its requests before ``applied`` were applied."""
    group = fold(driven.journal)
    assert group is not None
    load(group, driven.now, driven.config)
    if applied is not None:
        group.applied_until = {0: applied}
    driven.snapshot = snapshot.encode(group)
    return driven.group


def test_members_get_full_sessions_from_the_load_and_expire_without_heartbeats(driven: Driven) -> None:
    first, second = driven.stable_group(2)
    driven.now += 10 * SESSION_MS
    reload(driven)
    driven.sleep(SESSION_MS - 1)
    assert len(classic(driven.group).members) == 2
    driven.heartbeat(first)
    driven.sleep(1)
    assert list(classic(driven.group).members) == [first.member_id]
    assert second.member_id not in classic(driven.group).members


def test_a_stable_group_goes_on_without_a_rebalance(driven: Driven) -> None:
    first, second = driven.stable_group(2)
    generation = driven.group.generation
    reload(driven)
    assert driven.heartbeat(first).error is driven.heartbeat(second).error is Error.NONE
    assert (driven.state(), driven.group.generation) == (State.STABLE, generation)


def test_a_group_that_awaits_its_members_goes_on_when_they_ask_again(driven: Driven) -> None:
    first, second = driven.stable_group(2)
    driven.rejoin(first)
    assert driven.state() is State.PREPARING_REBALANCE
    reload(driven)
    assert driven.heartbeat(second).error is Error.REBALANCE_IN_PROGRESS
    driven.rejoin(second)
    driven.rejoin(first)
    assert driven.state() is State.COMPLETING_REBALANCE
    assert set(classic(driven.group).members) == {first.member_id, second.member_id}


def test_a_member_that_does_not_ask_again_leaves_the_rebalance(driven: Driven) -> None:
    first, second = driven.stable_group(2)
    driven.rejoin(first)
    reload(driven)
    for _ in range(REBALANCE_MS // SESSION_MS * 2):
        driven.sleep(SESSION_MS // 2)
        if first.member_id in classic(driven.group).members:
            driven.heartbeat(first)
        if classic(driven.group).member_index.awaiting_join == 0:
            driven.rejoin(second)
    assert list(classic(driven.group).members) == [second.member_id]


def test_a_group_that_awaits_its_assignment_gets_it(driven: Driven) -> None:
    first, second = driven.stable_group(2)
    rejoined = [driven.rejoin(member) for member in (first, second)]
    assert driven.state() is State.COMPLETING_REBALANCE
    loaded = reload(driven)
    assert set(classic(loaded).pending_syncs) == {first.member_id, second.member_id}
    driven.sync_all([joined(answer) for answer in rejoined])
    assert driven.state() is State.STABLE


def test_the_first_rebalance_gives_members_the_initial_delay_once_more() -> None:
    driven = Driven()
    joining = driven.join(version=3)
    assert joining.response is None
    reload(driven)
    driven.sleep(DELAY_MS)
    assert driven.state() is State.PREPARING_REBALANCE
    driven.sleep(DELAY_MS)
    assert driven.state() is State.EMPTY


def test_offsets_expire_as_before() -> None:
    week = 7 * 24 * 3_600_000
    driven = Driven(offsets_retention_check_interval_ms=60_000)
    driven.commit()
    before = driven.group.timers["expiry"]
    loaded = reload(driven)
    assert loaded.timers["expiry"].deadline(0) == before.deadline(0)
    driven.sleep(week + 60_000)
    assert not driven.exists


def test_requests_that_the_journal_names_are_not_applied_again(driven: Driven) -> None:
    first, second = (driven.commit(offsets={("topic", 0): offset}).request for offset in (1, 2))
    reload(driven, applied=2)
    entries = len(driven.journal)
    assert driven.step([first, second]) == []
    assert (len(driven.journal), driven.group.applied_until) == (entries, {0: 2})
    driven.commit(offsets={("topic", 0): 3})
    assert driven.group.applied_until == {}
    assert len(driven.journal) == entries + 1
