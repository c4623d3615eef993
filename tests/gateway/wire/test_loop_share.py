"""Long work has one time slice in each pass of the event loop, and a client its share of the loop's time."""

import asyncio
import weakref
from collections import Counter

import pytest

from streaming.gateway.wire import loop_share
from streaming.gateway.wire.client_request import Caller, QuotaEntity
from streaming.gateway.wire.loop_share import (
    ACCOUNTS_BEFORE_SWEEP,
    BURST_SECONDS,
    CLIENT_SHARE,
    SLICE_SECONDS,
    LoopShare,
)
from streaming.gateway.wire.steps import Steps
from tests.support.garbage import without_collections
from tests.support.virtual_time import VirtualTimeLoop, run_in_virtual_time

WORKERS, PASSES = 20, 200
CALLER = Caller("client", "10.0.0.1", "User:alice")
CLIENT = CALLER.quota_entity
BYSTANDER = Caller("client", "10.0.0.2", "User:bob")
STEP_SECONDS = SLICE_SECONDS / 2
MAKING_STEP_SECONDS = 0.00015
"""A step that makes the entries that it writes, the longest of all."""

HEARTBEAT_PASSES = 5
"""Of the loop: bytes arrive, the handler sends an event; the response arrives, the handler goes on, bytes leave."""

COORDINATOR_SECONDS = 0.003
"""What a heartbeat takes in any case; with a job it takes a hundred times as long."""


def client(number: int) -> QuotaEntity:
    return QuotaEntity(f"10.0.1.{number}", "User:ANONYMOUS")


def work(seconds: float, step_seconds: float = STEP_SECONDS) -> Steps[None]:
    """Work that keeps the virtual loop busy that long."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    for _ in range(round(seconds / step_seconds)):
        loop.pass_time(step_seconds)
        yield


async def passes(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_each_pass_of_the_loop_gives_one_slice_and_all_have_as_many() -> None:
    slices: Counter[int] = Counter()

    async def run() -> None:
        share = LoopShare()

        def work_on(worker: int) -> None:
            slices[worker] += 1
            share.defer(client(worker), lambda: work_on(worker))

        for worker in range(WORKERS):
            share.defer(client(worker), lambda worker=worker: work_on(worker))  # type: ignore[misc]
        await passes(PASSES)
        assert abs(slices.total() - PASSES) <= 1
        assert max(slices.values()) - min(slices.values()) <= 1

    asyncio.run(run())


def test_work_is_paused_when_its_slice_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_share, "SLICE_SECONDS", 0.0)
    done: list[str] = []

    def steps(name: str) -> Steps[str]:
        for number in range(3):
            done.append(f"{name}{number}")
            yield
        return name

    async def run() -> list[str]:
        share = LoopShare()
        return await asyncio.gather(*(share.complete(CALLER, steps(name)) for name in "ab"))

    assert asyncio.run(run()) == ["a", "b"]
    assert done == ["a0", "b0", "a1", "b1", "a2", "b2"]


def test_short_work_is_complete_at_once() -> None:
    results: list[object] = []

    def steps() -> Steps[int]:
        yield
        return 7

    async def run() -> None:
        LoopShare().run(CLIENT, steps(), results.append, results.append)
        assert results == [7]

    asyncio.run(run())


@pytest.mark.parametrize("steps_before", [0, 1000])
def test_a_failure_is_reported(steps_before: int) -> None:
    failures: list[Exception] = []

    def steps() -> Steps[None]:
        for _ in range(steps_before):
            yield
        raise ValueError("on purpose")

    async def run() -> None:
        share = LoopShare()
        share.run(CLIENT, steps(), lambda _: None, failures.append)
        with pytest.raises(ValueError, match="on purpose"):
            await share.complete(CALLER, steps())
        await passes(steps_before + 1)

    asyncio.run(run())
    assert [str(failure) for failure in failures] == ["on purpose"]


def test_work_that_fails_does_not_stop_the_others() -> None:
    done: list[int] = []

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        share = LoopShare()

        def fail() -> None:
            raise RuntimeError("on purpose")

        share.defer(CLIENT, fail)
        share.defer(CLIENT, lambda: done.append(1))
        await passes(5)

    asyncio.run(run())
    assert done == [1]


@pytest.mark.parametrize("pieces", [1, 5, 100])
def test_a_client_gets_its_share_of_the_loop_however_many_pieces_of_work_it_has(pieces: int) -> None:
    async def run() -> None:
        share, loop = LoopShare(), asyncio.get_running_loop()
        total = 2.0
        await asyncio.gather(*(share.complete(CALLER, work(total / pieces)) for _ in range(pieces)))
        assert loop.time() == pytest.approx((total - BURST_SECONDS) / CLIENT_SHARE, rel=0.05)

    run_in_virtual_time(run())


def test_a_client_that_rested_may_use_some_time_at_once() -> None:
    async def run() -> None:
        share, loop = LoopShare(), asyncio.get_running_loop()
        for _ in range(3):
            started = loop.time()
            await share.complete(CALLER, work(BURST_SECONDS))
            assert loop.time() - started == pytest.approx(BURST_SECONDS)
            await asyncio.sleep(BURST_SECONDS / CLIENT_SHARE)

    run_in_virtual_time(run())


def test_a_client_that_used_up_its_time_delays_no_other_client() -> None:
    async def run() -> None:
        share, loop = LoopShare(), asyncio.get_running_loop()
        hostile = [asyncio.create_task(share.complete(CALLER, work(10.0))) for _ in range(100)]
        await asyncio.sleep(1.0)
        started = loop.time()
        await share.complete(BYSTANDER, work(BURST_SECONDS))
        # The hostile client's share of that time, and no more than a slice at either end.
        assert loop.time() - started <= BURST_SECONDS / (1 - CLIENT_SHARE) + 0.002
        for each in hostile:
            each.cancel()

    run_in_virtual_time(run())


def test_a_heartbeat_takes_less_than_twice_as_long_while_another_client_uses_up_its_burst() -> None:
    async def run() -> None:
        share, loop = LoopShare(), asyncio.get_running_loop()
        hostile = [
            asyncio.create_task(share.complete(CALLER, work(BURST_SECONDS, MAKING_STEP_SECONDS))) for _ in range(10)
        ]
        await passes(1)
        times = []
        while loop.time() < BURST_SECONDS:
            started = loop.time()
            await passes(2)
            await asyncio.sleep(COORDINATOR_SECONDS)
            await passes(HEARTBEAT_PASSES - 2)
            times.append(loop.time() - started)
        assert max(times) < 2 * COORDINATOR_SECONDS
        for each in hostile:
            each.cancel()

    run_in_virtual_time(run())


def test_small_work_of_a_client_that_used_up_its_time_does_not_wait() -> None:
    async def run() -> None:
        share, loop = LoopShare(), asyncio.get_running_loop()
        share.charge(CLIENT, 100.0)
        await share.complete(CALLER, work(STEP_SECONDS))
        assert loop.time() <= 2 * STEP_SECONDS

    run_in_virtual_time(run())


def test_clients_that_have_all_their_time_left_are_forgotten() -> None:
    async def run() -> None:
        share = LoopShare()
        for number in range(20_000):
            share.charge(QuotaEntity(f"host-{number}", "User:ANONYMOUS"), 0.001)
            await asyncio.sleep(0.01)
        assert len(share._accounts) <= ACCOUNTS_BEFORE_SWEEP

    run_in_virtual_time(run())


def test_slices_of_nobody_are_not_counted() -> None:
    async def run() -> None:
        share, loop = LoopShare(), asyncio.get_running_loop()
        slices = 0

        def run_slice() -> None:
            nonlocal slices
            for _ in work(1.0):
                pass
            slices += 1
            share.defer(None, run_slice)

        share.defer(None, run_slice)
        await passes(PASSES)
        assert slices >= PASSES - 2
        assert loop.time() == pytest.approx(slices)

    run_in_virtual_time(run())


def test_what_long_work_refers_to_is_freed_without_a_collection() -> None:
    class Request:
        """What the work is for."""

    async def left() -> Request | None:
        request = Request()
        reference = weakref.ref(request)

        def start(request: Request) -> None:
            def finished(_result: None) -> None:
                assert request

            LoopShare().run(CLIENT, work(10 * SLICE_SECONDS), finished, lambda failure: pytest.fail(repr(failure)))

        start(request)
        del request
        await passes(PASSES)
        return reference()

    with without_collections():
        assert run_in_virtual_time(left()) is None
