"""The rules of Spark's optimizer that find nothing to improve in the coordinator's query.

Spark optimizes the query again for every batch: it tries 120 rules, many of them several times. The query is one
projection, one operator and one sink. It has no joins, filters, subqueries, windows, unions, generators or limits, and
its expressions are as short as they can be, so the rules below leave its plan as it is; only an alias is renamed.
The rules that Spark needs to run a query at all cannot be switched off, and are not listed: Spark would warn about each
at every batch. ``RewriteWithExpression`` and ``CleanupDynamicPruningFilters`` are two of them since 4.3.0.
"""

RULES_WITHOUT_EFFECT = {
    "org.apache.spark.sql.catalyst.optimizer": (
        "EliminateDistinct InlineCTE RemoveNoopOperators CombineUnions RemoveNoopUnion "
        "ConvertToLocalRelation PropagateEmptyRelation OptimizeOneRowRelationSubquery "
        "PullOutNestedDataOuterRefExpressions RemoveLiteralFromGroupExpressions "
        "RemoveRepetitionFromGroupExpressions PushProjectionThroughUnion PushProjectionThroughLimitAndOffset "
        "ReorderJoin EliminateOuterJoin PushDownPredicates PushDownLeftSemiAntiJoin "
        "PushLeftSemiLeftAntiThroughJoin OptimizeJoinCondition LimitPushDown LimitPushDownThroughWindow "
        "ColumnPruning GenerateOptimization CollapseRepartition CollapseProject OptimizeWindowFunctions "
        "CollapseWindow EliminateOffsets EliminateLimits OptimizeRepartition EliminateWindowPartitions "
        "TransposeWindow NullPropagation RewriteNonCorrelatedExists NullDownPropagation ConstantPropagation "
        "FoldablePropagation OptimizeIn OptimizeRand ConstantFolding EliminateAggregateFilter "
        "ReorderAssociativeOperator LikeSimplification BooleanSimplification SimplifyConditionals "
        "PushFoldableIntoBranches SimplifyBinaryComparison ReplaceNullWithFalseInPredicate PruneFilters "
        "SimplifyCasts SimplifyCaseConversionExpressions SimplifyDateTimeConversions EliminateSerialization "
        "RemoveRedundantAliases RemoveRedundantAggregates UnwrapCastInBinaryComparison OptimizeUpdateFields "
        "SimplifyExtractValueOps OptimizeCsvJsonExprs CombineConcats "
        "PushdownPredicatesAndPruneColumnsForCTEDef InferFiltersFromGenerate InferFiltersFromConstraints "
        "PushExtraPredicateThroughJoin CleanUpTempCTEInfo Optimizer$UpdateCTERelationStats "
        "CostBasedJoinReorder PushDownJoinThroughUnion EliminateSorts RemoveRedundantSorts DecimalAggregates "
        "OptimizeExpand EliminateMapObjects CombineTypedFilters ObjectSerializerPruning "
        "ReassignLambdaVariableID OptimizeOneRowPlan CheckCartesianProducts PushPredicateThroughJoin "
        "InjectRuntimeFilter MergeSubplans PushPredicateThroughNonJoin InferWindowGroupLimit"
    ),
    "org.apache.spark.sql.catalyst.analysis": "UpdateAttributeNullability",
    "org.apache.spark.sql.execution.datasources.v2": "OptimizeMetadataOnlyDeleteFromTable",
    "org.apache.spark.sql.execution.datasources": (
        "SchemaPruning V1Writes PruneFileSourcePartitions PushVariantIntoScan"
    ),
    "org.apache.spark.sql.execution": "OptimizeMetadataOnlyQuery",
    "org.apache.spark.sql.execution.dynamicpruning": ("PartitionPruning RowLevelOperationRuntimeGroupFiltering"),
    "org.apache.spark.sql.execution.python": "ExtractPythonUDTFs",
}
"""Names of rules by package, separated by spaces. Spark ignores names that it does not know."""


def excluded_rules() -> str:
    """The value of ``spark.sql.optimizer.excludedRules``."""
    return ",".join(f"{package}.{rule}" for package, rules in RULES_WITHOUT_EFFECT.items() for rule in rules.split())
