"""Two tables: Spark's internals that the job uses, from the registry that checks them, and what trials have found."""

from collections.abc import Iterator

from streaming.job.spark_internals.registry import INTERNALS, SparkInternal
from streaming.job.spark_internals.trials import TRIALS, Trial, held_on

HEADER = ("internal", "what it uses", "gain", "without it", "pyspark")
TRIALS_HEADER = ("pyspark", "connector", "held", "does not hold", "why", "what users lose")


def markdown() -> str:
    """The table of internals in Markdown."""
    return _table(HEADER, map(_cells, INTERNALS))


def trials_markdown() -> str:
    """The table of trials in Markdown, newest version first."""
    rows = (row for version, trial in reversed(list(TRIALS.items())) for row in _rows(version, trial))
    return _table(TRIALS_HEADER, rows)


def _table(header: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _cells(internal: SparkInternal) -> tuple[str, ...]:
    tried = ", ".join(held_on(internal.name))
    versions = f"any; tried with {tried}" if internal.any_version else tried
    return f"`{internal.name}`", internal.uses, internal.gain, internal.without, versions


def _rows(version: str, trial: Trial) -> Iterator[tuple[str, ...]]:
    """One row for each reason; one for a version on which everything held."""
    held = f"{len(trial.held)} of {len(trial.held) + len(trial.failed)}"
    if not trial.failed:
        yield version, trial.connector, held, "", "", "nothing"
        return
    if not trial.held:
        (why,) = dict.fromkeys(trial.failed.values())
        yield version, trial.connector, held, "all", why, "the job does not run"
        return
    for why in dict.fromkeys(trial.failed.values()):
        lost = [internal for internal in INTERNALS if trial.failed.get(internal.name) == why]
        names = ", ".join(f"`{internal.name}`" for internal in lost)
        yield version, trial.connector, held, names, why, "; ".join(internal.without for internal in lost)
