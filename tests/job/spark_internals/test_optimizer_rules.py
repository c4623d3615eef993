"""The rules of Spark's optimizer that the job leaves out: all that Spark lets it, and none that changes a plan."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from streaming.contract.topics import TopicNames
from streaming.embedded.jars import resolve_jars
from streaming.job.group_batch.settings import Settings
from streaming.job.options import JobOptions
from streaming.job.parts import SHIPPED
from streaming.job.query import coordinator_query, requests_by_group
from streaming.job.session import spark_session, spark_settings
from streaming.job.spark_internals.internal_settings import EXCLUDED_RULES
from streaming.job.spark_internals.optimizer_rules import excluded_rules

NEW_IN_EACH_PLAN = re.compile(r"#\d+L?|@[0-9a-f]+|plan_id=\d+|[0-9a-f-]{36}|\d{4}-\d\d-\d\d [\d:.]+|(?m:(?<=\]), \d+$)")
"""Ids of columns, Java objects, nodes, runs and observations, and the time of the batch."""

NEEDED_SINCE_4_3 = {
    "org.apache.spark.sql.catalyst.optimizer.RewriteWithExpression",
    "org.apache.spark.sql.execution.dynamicpruning.CleanupDynamicPruningFilters",
}

pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> JobOptions:
    checkpoint = tmp_path_factory.mktemp("optimizer") / "checkpoint"
    return JobOptions(bootstrap_servers="127.0.0.1:1", checkpoint=str(checkpoint), driver_memory="512m")


@pytest.fixture(scope="module")
def spark(options: JobOptions) -> Iterator[SparkSession]:
    with spark_session(spark_settings(options, resolve_jars())) as session:
        yield session


def each(scala_collection: Any) -> Iterator[Any]:
    iterator = scala_collection.iterator()
    while iterator.hasNext():
        yield iterator.next()


def needed(spark: SparkSession) -> set[str]:
    """The rules about which Spark warns at each batch if they are to be left out."""
    return set(each(spark._jsparkSession.sessionState().optimizer().nonExcludableRules()))


def test_spark_can_do_without_all_that_are_left_out(spark: SparkSession) -> None:
    assert set(excluded_rules().split(",")) & needed(spark) == set()


def test_all_rules_that_this_and_the_next_spark_can_do_without_are_left_out(spark: SparkSession) -> None:
    batches = each(spark._jsparkSession.sessionState().optimizer().defaultBatches())
    rules = {rule.ruleName() for batch in batches for rule in each(batch.rules())}
    assert set(excluded_rules().split(",")) == rules - needed(spark) - NEEDED_SINCE_4_3


@pytest.mark.parametrize("state_partitions", [1, 2])
def test_the_plan_is_the_same_without_them(
    spark: SparkSession, options: JobOptions, capsys: pytest.CaptureFixture[str], state_partitions: int
) -> None:
    assert spark.conf.get(EXCLUDED_RULES) == excluded_rules()
    without = _plan(spark, options, capsys, state_partitions)
    spark.conf.unset(EXCLUDED_RULES)
    try:
        assert _plan(spark, options, capsys, state_partitions) == without
    finally:
        spark.conf.set(EXCLUDED_RULES, excluded_rules())


def _plan(spark: SparkSession, options: JobOptions, capsys: pytest.CaptureFixture[str], state_partitions: int) -> str:
    """The optimized and the physical plan, without what is new in each plan, and aliases that change no name."""
    settings = Settings(TopicNames(), 1)
    requests = requests_by_group(spark, options, SHIPPED)
    coordinator_query(requests, options, settings, state_partitions, SHIPPED, 0)._df.explain(extended=True)
    plan = capsys.readouterr().out.partition("== Optimized Logical Plan ==")[2]
    assert "FlatMapGroupsInPandasWithState" in plan
    return re.sub(r"\b(\w+) AS \1\b", r"\1", NEW_IN_EACH_PLAN.sub("", plan))
