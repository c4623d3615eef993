"""``group-coordinator schema``: the JSON Schema of the messages."""

from streaming.cli.console import print_json
from streaming.contract.schema import json_schema
from streaming.explain.publishing.contract import REBALANCES


def schema() -> None:
    """Print the JSON Schema of every message on the coordinator's topics."""
    print_json(json_schema([REBALANCES]))
