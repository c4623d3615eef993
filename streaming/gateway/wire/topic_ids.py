"""Ids of topics: UUIDs on Kafka's wire, URL-safe base64 in messages, which is Kafka's text form."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from uuid import UUID

__all__ = ["OFFSETS_FIRST_VERSION_WITH_TOPIC_IDS", "text_of_topic_id", "topic_id_of_text"]

OFFSETS_FIRST_VERSION_WITH_TOPIC_IDS = 10
"""The first version of OffsetCommit and OffsetFetch that names topics by their ids (KIP-848). The coordinator's events
name them by their names."""


def text_of_topic_id(topic_id: UUID | None) -> str:
    """Kafka's text form of an id; empty for the zero id, which kio reads as None."""
    return "" if topic_id is None else urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def topic_id_of_text(text: str) -> UUID | None:
    """The id in a text of :func:`text_of_topic_id`."""
    return UUID(bytes=urlsafe_b64decode(text + "==")) if text else None
