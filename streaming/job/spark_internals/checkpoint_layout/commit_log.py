"""The files of ``commits``, which Spark writes when a batch is complete: a line with a version, then JSON."""

import msgspec


class _CompleteBatch(msgspec.Struct, rename="camel"):
    state_unique_ids: dict[int, list[list[str]]] | None = None
    """By operator, state partition and store; an operator of ours has one store."""


def state_ids(text: str, operator: int = 0) -> dict[int, str]:
    """RocksDB's ids of the state after the batch, by state partition; empty with the memory store.

    Raises:
        ValueError: Spark has not written this, or not to its end.
    """
    _version, _, content = text.partition("\n")
    ids = msgspec.json.decode(content, type=_CompleteBatch).state_unique_ids or {}
    return {partition: stores[0] for partition, stores in enumerate(ids.get(operator, ())) if stores}
