"""Writes trials as the source of :mod:`streaming.job.spark_internals.trials`."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from streaming.job.spark_internals import trials
from streaming.job.spark_internals.trials import Trial

BEGIN, END = "TRIALS: Mapping[str, Trial] = {\n", "}\n"
LONGEST_REASON = 90
"""Characters of a reason: its line must fit the source."""


def source(listed: Mapping[str, Trial]) -> str:
    """The module's source with these trials, by version of pyspark."""
    head, _, rest = Path(trials.__file__).read_text().partition(BEGIN)
    tail = rest[rest.index(f"\n{END}") + 1 :]
    by_age = sorted(listed.items(), key=lambda item: _numbers(item[0]))
    return head + BEGIN + "".join(line for version, trial in by_age for line in _lines(version, trial)) + tail


def _lines(version: str, trial: Trial) -> Iterator[str]:
    yield f'    "{version}": Trial(\n'
    yield f'        connector="{trial.connector}",\n'
    yield from _block("held=(", [_quoted(name) for name in trial.held], ")")
    reasons = {name: why[:LONGEST_REASON] for name, why in trial.failed.items()}
    yield from _block("failed={", [f"{_quoted(name)}: {_quoted(why)}" for name, why in reasons.items()], "}")
    yield "    ),\n"


def _block(begin: str, items: Iterable[str], end: str) -> Iterator[str]:
    """The items one a line, as the formatter wants it."""
    lines = [f"            {item},\n" for item in items]
    yield from (f"        {begin}\n", *lines, f"        {end},\n") if lines else (f"        {begin}{end},\n",)


def _quoted(text: str) -> str:
    # JSON's strings are Python's, too.
    return json.dumps(text, ensure_ascii=False)


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdigit()]
