"""Compare Spark's two operators for the coordinator's step: `python -m tests.bench.operators`; 20 minutes.

``applyInPandasWithState``, with the Arrow-native worker and with pyspark's, and ``transformWithState``, with pandas
frames and with rows. Each runs the whole job: the step with the groups' state in RocksDB, and the topics of requests
and responses. All are started and warmed up first, and measured alternately, in short rounds in one run, as
:mod:`tests.bench.compare` does it; a ratio is the median of the ratios of the rounds.
"""

from datetime import datetime
from typing import Annotated

import typer

from tests.bench.environment import commit, machine, print_results, versions, write_results
from tests.bench.figures import Scale
from tests.bench.operators.comparison import SMALLEST, SYSTEMS, Extent, Operators, measure, table
from tests.bench.scenarios.loads import measuring


def main(
    smallest: Annotated[bool, typer.Option("--smallest", help="Measure a moment of everything: a smoke test.")] = False,
    only: Annotated[str, typer.Option(help="Systems separated by commas.")] = ",".join(SYSTEMS),
) -> None:
    """Measure the systems alternately, and print the medians and their ratios to the first."""
    date, before = datetime.now().astimezone(), machine()
    with measuring("operators", Scale()) as bench:
        systems = {name: SYSTEMS[name] for name in only.split(",")}
        figures = measure(bench, systems, SMALLEST if smallest else Extent())
    operators = Operators(
        date=date.isoformat(timespec="seconds"), commit=commit(), machine=before, versions=versions(), figures=figures
    )
    print_results(table(operators), write_results("operators", date, operators), width=180)


if __name__ == "__main__":
    typer.run(main)
