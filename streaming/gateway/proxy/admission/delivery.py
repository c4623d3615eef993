"""Whether a client reads its responses. Times are monotonic, in seconds."""


class Delivery:
    """How long a client has taken for what was written for it.

    ``written``: the bytes that were written for it so far.
    """

    __slots__ = ("_awaited", "_awaited_since", "_read", "_read_since", "written")

    def __init__(self) -> None:
        self.written = 0
        self._awaited, self._awaited_since = 0, 0.0
        self._read, self._read_since = -1, 0.0

    def seconds(self, unsent: int, now: float) -> float:
        """How long the client has taken so far for what was unsent at some moment and is not read in full.

        It is noticed with the calls only, so call it again and again. ``unsent`` bytes have yet to be read.
        """
        if not unsent or self.written - unsent >= self._awaited:
            self._awaited, self._awaited_since = self.written, now
        return now - self._awaited_since

    def stalled_seconds(self, unsent: int, now: float) -> float:
        """How long the client has read nothing at all, as of the calls of this method."""
        read = self.written - unsent
        if not unsent or read != self._read:
            self._read, self._read_since = read, now
        return now - self._read_since
