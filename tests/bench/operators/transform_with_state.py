"""`group-coordinator` on Spark's newer operator: `python -m tests.bench.operators.transform_with_state run ...`.

``transformWithState`` takes the place of ``applyInPandasWithState``; the environment variable says whether its
processor gets pandas frames or rows. The rest of the query, the settings, the topics and the wake events are the job's.
The operator needs RocksDB (``state-store``) and pyspark's own worker (``python-worker``).
"""

import os
from typing import Literal

from pyspark.sql import DataFrame, GroupedData

from streaming.job.group_batch.settings import Settings
from streaming.job.operator import OUTPUT_SCHEMA
from streaming.job.parts import JobParts
from tests.bench.operators.stateful_processors import PandasGroupProcessor, RowGroupProcessor
from tests.bench.systems.other_parts import run_with

VARIABLE = "BENCH_STATEFUL_PROCESSOR"
Form = Literal["pandas", "rows"]

OPTIONS: dict[str, object] = {"state-store": "rocksdb", "python-worker": "stock"}


def rows_of_groups(groups: GroupedData, settings: Settings) -> DataFrame:
    """The rows of one of the two processors."""
    if os.environ[VARIABLE] == "pandas":
        processor = PandasGroupProcessor(settings)
        return groups.transformWithStateInPandas(processor, OUTPUT_SCHEMA, "Append", "ProcessingTime")
    return groups.transformWithState(RowGroupProcessor(settings), OUTPUT_SCHEMA, "Append", "ProcessingTime")


if __name__ == "__main__":
    run_with(JobParts(rows_of_groups=rows_of_groups))
