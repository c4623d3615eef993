"""`group-coordinator` on Spark's newer operator: `python -m tests.bench.operators.transform_with_state run ...`.

``transformWithState`` takes the place of ``applyInPandasWithState``; the environment variable says whether its
processor gets pandas frames or rows. The rest of the query, the settings, the topics and the wake events are the job's.
The operator needs RocksDB (``state-store``) and pyspark's own worker (``python-worker``).
"""

import os
from typing import Literal
from unittest.mock import patch

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from streaming.cli import main as cli
from streaming.job import query
from streaming.job.group_batch.settings import Settings
from streaming.job.monitoring.metrics import observe_measures
from streaming.job.operator import OUTPUT_SCHEMA
from tests.bench.operators.stateful_processors import PandasGroupProcessor, RowGroupProcessor

VARIABLE = "BENCH_STATEFUL_PROCESSOR"
Form = Literal["pandas", "rows"]

OPTIONS: dict[str, object] = {"state-store": "rocksdb", "python-worker": "stock"}


def output_rows(requests: DataFrame, settings: Settings, state_partitions: int) -> DataFrame:
    """Replace the function of this name in :mod:`streaming.job.query`."""
    if state_partitions == 1:
        requests = requests.coalesce(1)
    groups = requests.groupBy("groupId")
    if os.environ[VARIABLE] == "pandas":
        processor = PandasGroupProcessor(settings)
        rows = groups.transformWithStateInPandas(processor, OUTPUT_SCHEMA, "Append", "ProcessingTime")
    else:
        rows = groups.transformWithState(RowGroupProcessor(settings), OUTPUT_SCHEMA, "Append", "ProcessingTime")
    return observe_measures(rows).where(sf.col("topic").isNotNull())


if __name__ == "__main__":
    with patch.object(query, "_output_rows", output_rows):
        cli.main()
