"""Conversions of a group from one type to another, one file for each direction, and what both call a protocol."""

from coordinator_logic.config import CoordinatorConfig


def consumer_group_protocol(config: CoordinatorConfig) -> str:
    """The protocol of KIP-848; a batch that an earlier release has planned gives that release's words for it."""
    return "the consumer group protocol" if config.logic_version else "the newer protocol"
