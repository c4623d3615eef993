"""The table of Spark's internals that the job uses, generated from the registry that checks them."""

from streaming.job.spark_internals.registry import INTERNALS, SparkInternal

HEADER = ("internal", "what it uses", "gain", "without it", "pyspark")


def markdown() -> str:
    """The table in Markdown."""
    lines = [HEADER, ("---",) * len(HEADER), *map(_cells, INTERNALS)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _cells(internal: SparkInternal) -> tuple[str, ...]:
    versions = "any" if internal.tried is None else ", ".join(internal.tried)
    return f"`{internal.name}`", internal.uses, internal.gain, internal.without, versions
