"""The timer that is due first: found in a heap as by a scan of all timers."""

from hypothesis import given
from hypothesis import strategies as st

from coordinator_logic.group.deadlines import Deadlines, earliest
from coordinator_logic.group.timer import HEARTBEAT, Effect, Timer

KEYS = ("heartbeat-a", "heartbeat-b", "heartbeat-c", "join", "sync", "expiry")
TIMERS = st.builds(Timer, st.just(HEARTBEAT), st.integers(0, 6), st.integers(-2, 6), effect=st.sampled_from(Effect))
ARMINGS = st.tuples(st.just("arm"), st.sampled_from(KEYS), TIMERS)
CANCELS = st.tuples(st.just("cancel"), st.sampled_from(KEYS), st.none())
SEARCHES = st.tuples(st.sampled_from(("search", "fire")), st.none(), st.none())


@given(
    st.dictionaries(st.sampled_from(KEYS), TIMERS),
    st.integers(0, 6),
    st.lists(st.one_of(ARMINGS, CANCELS, SEARCHES), max_size=40),
)
def test_the_heap_finds_the_timer_that_a_scan_finds(
    timers: dict[str, Timer], started_at: int, moves: list[tuple[str, str, Timer]]
) -> None:
    deadlines = Deadlines(timers, started_at)
    for move, key, timer in moves:
        if move == "arm":
            timers.pop(key, None)
            timers[key] = timer
            deadlines.add(key, timer)
        elif move == "cancel":
            timers.pop(key, None)
        else:
            found = deadlines.earliest()
            assert found == earliest(timers, started_at)
            if move == "fire" and found is not None:
                del timers[found[0]]


def test_of_timers_with_the_same_deadline_the_one_armed_first_is_due_first() -> None:
    timers = {key: Timer(HEARTBEAT, 0, 10, key) for key in "cab"}
    deadlines = Deadlines(timers, 0)
    timers["c"] = Timer(HEARTBEAT, 5, 5, timers.pop("c").member_id)
    deadlines.add("c", timers["c"])
    order = []
    while found := deadlines.earliest():
        order.append(found[0])
        del timers[found[0]]
    assert order == ["a", "b", "c"]
