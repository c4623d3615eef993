"""Lists of Kafka's tests that cannot pass through job and gateway, or not always: `make kafka-tests` checks them."""

from collections.abc import Mapping
from itertools import groupby

from tests.kafka_tests.exceptions import CANNOT_RUN, MAY_FAIL


def lists() -> dict[str, str]:
    """The reasons in Markdown, each with its tests below it."""
    return {"cannot run": _markdown(CANNOT_RUN), "may fail": _markdown(MAY_FAIL)}


def _markdown(exceptions: Mapping[str, str]) -> str:
    lines = []
    for reason, tests in groupby(exceptions, exceptions.__getitem__):
        lines += [f"- {reason}:", *(f"  - `{test}`" for test in tests)]
    return "".join(f"{line}\n" for line in lines)
