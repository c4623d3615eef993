"""The job on Spark's two operators, ``applyInPandasWithState`` and ``transformWithState``: `make bench-operators`.

May import the other measurements; nothing imports it.
"""
