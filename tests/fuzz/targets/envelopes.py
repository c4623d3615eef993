"""Records of the requests topic: any key, any value, several to a batch."""

from collections.abc import Iterator

from streaming.job.rows.records import KafkaRecord
from tests.fuzz.targets.conversation import GROUP_ID, NOW, answered, join, lived, requests
from tests.support.request_events import dumped

SEPARATOR = b"\n"
KEYS = (GROUP_ID.encode(), GROUP_ID.encode(), None, b"", b"\xff\xfe", b"another", b"k" * 40_000)
"""By the first byte of an input; half of the small ones give the group's own key."""


def seeds() -> Iterator[bytes]:
    """Valid requests, alone and together."""
    for request in requests():
        yield b"\x00" + request
    yield b"\x00" + SEPARATOR.join(requests())
    yield b"\x00" + SEPARATOR.join([dumped(join()), dumped(join(correlationId="another"))])


def run(data: bytes) -> None:
    """Process a batch of the values in ``data``, and go on with the group that it leaves."""
    key = KEYS[data[0] % len(KEYS)] if data else None
    values = data[1:].split(SEPARATOR)
    outcome = answered([KafkaRecord(NOW + i, 0, i, key, value) for i, value in enumerate(values)])
    if outcome.state is not None:
        lived(outcome)
