"""How long the gateway's handlers wait, where it is not for the machine's speed to say what they answer."""

import pytest

from streaming.gateway import channel, errors, topic_catalog

__all__ = ["grant_patience"]

LONG_SECONDS = 120.0


def grant_patience(patch: pytest.MonkeyPatch, answer_seconds: float = LONG_SECONDS) -> None:
    """Let handlers that are made from now on wait so long for the coordinator's answers, and long for the broker's."""
    for api, granted in errors._PATIENCE.items():
        patch.setitem(errors._PATIENCE, api, granted._replace(seconds=answer_seconds))
    patch.setattr(errors, "JOIN_MARGIN_MS", 0)
    patch.setattr(channel, "DELIVERY_TIMEOUT_SECONDS", LONG_SECONDS)
    patch.setattr(topic_catalog, "ASK_TIMEOUT_SECONDS", LONG_SECONDS)
