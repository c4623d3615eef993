"""The answers that a client is owed, in the order of its requests."""

from collections import deque
from collections.abc import Callable

__all__ = ["Answers", "Slot"]


class Slot:
    """The place of one answer. ``size``: what the request, and then the answer, takes of memory, in bytes."""

    __slots__ = ("answer", "is_from_broker", "size")

    def __init__(self, size: int, is_from_broker: bool) -> None:
        self.size = size
        self.is_from_broker = is_from_broker
        self.answer: bytes | None = None


class Answers:
    """What is owed, first in first out. Whole answers may be given in any order, and wait for their turn."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._slots: deque[Slot] = deque()
        self._size = 0
        self._unhandled = 0

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def size(self) -> int:
        """Bytes of requests that are being handled and of answers that wait."""
        return self._size

    @property
    def await_handler(self) -> bool:
        """Whether some answer is still to come from a handler."""
        return self._unhandled > 0

    def owe(self, size: int = 0, *, is_from_broker: bool = False) -> Slot:
        """Open the place of the next request's answer."""
        slot = Slot(size, is_from_broker)
        self._slots.append(slot)
        self._size += size
        self._unhandled += not is_from_broker
        return slot

    def give(self, slot: Slot, answer: bytes) -> None:
        """The whole answer; it is written when all that came before it are."""
        slot.answer = answer
        self._size += len(answer) - slot.size
        slot.size = len(answer)
        self._unhandled -= not slot.is_from_broker
        self._flush()

    def stream(self, slot: Slot, piece: bytes, is_last: bool) -> None:
        """A piece of an answer whose turn it is."""
        assert slot is self._slots[0], "an answer from the broker overtook another one"
        self._write(piece)
        if is_last:
            self._drop_first()
            self._flush()

    def _flush(self) -> None:
        while self._slots and (answer := self._slots[0].answer) is not None:
            self._drop_first()
            self._write(answer)

    def _drop_first(self) -> None:
        self._size -= self._slots.popleft().size
