"""The clients' world in real time: one thread, in the order of time."""

import threading
from io import BytesIO

from tests.recovery.chaos.live import LiveWorld
from tests.recovery.checker import Function, Recorder, read

LIMIT_SECONDS = 30.0


def test_everything_happens_on_one_thread_in_the_order_of_time() -> None:
    done: list[str] = []
    threads: set[int] = set()
    ended = threading.Event()

    def note(what: str) -> None:
        done.append(what)
        threads.add(threading.get_ident())

    with LiveWorld(Recorder(BytesIO()), seed=1) as world:
        world.after(60, ended.set)
        world.after(40, lambda: note("later"))
        world.after(20, lambda: note("soon"))
        world.call(lambda: note("now"))
        assert done[0] == "now"
        assert ended.wait(LIMIT_SECONDS)
    assert done == ["now", "soon", "later"]
    assert len(threads) == 1
    assert threading.get_ident() not in threads


def test_an_exception_is_kept_and_ends_nothing() -> None:
    with LiveWorld(Recorder(BytesIO()), seed=1) as world:
        world.call(lambda: 1 // 0)
        world.call(lambda: None)
    (failure,) = world.failures
    assert "ZeroDivisionError" in failure


def test_faults_are_in_the_history() -> None:
    file = BytesIO()
    with LiveWorld(Recorder(file), seed=1) as world:
        world.fault("a pause")
    events = read(file.getvalue().splitlines(keepends=True)).events
    assert [(event.f, event.note) for event in events] == [(Function.FAULT, "a pause")] * 2
