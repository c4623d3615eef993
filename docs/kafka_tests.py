"""The list of Kafka's tests that cannot pass through job and gateway, which `make kafka-tests` checks."""

from itertools import groupby

from tests.kafka_tests.exceptions import CANNOT_RUN


def markdown() -> str:
    """The reasons, each with its tests below it."""
    lines = []
    for reason, tests in groupby(CANNOT_RUN, CANNOT_RUN.__getitem__):
        lines += [f"- {reason}:", *(f"  - `{test}`" for test in tests)]
    return "".join(f"{line}\n" for line in lines)
