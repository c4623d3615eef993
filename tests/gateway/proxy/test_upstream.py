"""A response that is collected as a whole has memory first."""

from typing import Any, cast

from streaming.gateway.proxy.upstream import ExpectedResponse, Upstream
from streaming.gateway.wire.frames import LENGTH_SIZE

LARGE = 100_000


class Transport:
    """A transport that says whether it reads."""

    def __init__(self) -> None:
        self.reads = True

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def is_reading(self) -> bool:
        return self.reads

    def is_closing(self) -> bool:
        return False

    def set_write_buffer_limits(self, _high: int) -> None:
        pass


class Owner:
    """The owner of an upstream connection, with memory for a response once the test says so."""

    def __init__(self) -> None:
        self.has_memory = False
        self.asked: list[int] = []
        self.received: list[int] = []
        self.transport = Transport()
        self.upstream = Upstream(self, 1024, 10 * LARGE)
        self.upstream.connection_made(cast("Any", self.transport))

    def expect(self, *, waits_for_memory: bool) -> None:
        on_frame = lambda frame: self.received.append(len(frame))  # noqa: E731
        expected = ExpectedResponse(3, 1, 7, 0.0, on_frame=on_frame, waits_for_memory=waits_for_memory)
        self.upstream.expect(expected)

    def response_started(self, _expected: ExpectedResponse, _seconds: float) -> None:
        pass

    def upstream_lost(self, reason: str) -> None:
        raise AssertionError(reason)

    def upstream_writable(self) -> None:
        pass

    def may_collect(self, size: int) -> bool:
        self.asked.append(size)
        return self.has_memory


def response(size: int) -> bytes:
    return (size - LENGTH_SIZE).to_bytes(LENGTH_SIZE, "big") + (7).to_bytes(4, "big") + bytes(size - LENGTH_SIZE - 4)


def test_a_response_without_memory_is_read_no_further() -> None:
    owner = Owner()
    owner.expect(waits_for_memory=True)
    owner.expect(waits_for_memory=True)
    content = response(LARGE) + response(LARGE // 2)
    owner.upstream.data_received(content[:1000])
    assert (owner.asked, owner.transport.reads, owner.received) == ([LARGE], False, [])
    owner.upstream.collect()
    assert owner.transport.reads
    owner.has_memory = True
    owner.upstream.data_received(content[1000:])
    assert owner.received == [LARGE, LARGE // 2]
    assert owner.asked == [LARGE, LARGE // 2]


def test_a_response_to_the_gateway_itself_waits_for_no_memory() -> None:
    owner = Owner()
    owner.expect(waits_for_memory=False)
    owner.upstream.data_received(response(LARGE))
    assert (owner.asked, owner.received) == ([], [LARGE])


def test_a_client_that_reads_again_does_not_make_a_response_go_on_that_waits_for_memory() -> None:
    owner = Owner()
    owner.expect(waits_for_memory=True)
    owner.upstream.data_received(response(LARGE)[:1000])
    owner.upstream.set_reading(False)
    owner.upstream.set_reading(True)
    assert not owner.transport.reads
