"""The generated parts of the documents are current, and the documented conversation matches a real one."""

import json
import re
import uuid
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from coordinator_logic.apis import APIS
from docs import generate as documents
from streaming.contract import schema
from streaming.explain.publishing.contract import REBALANCES
from tests.support.coordinator_process import CoordinatorProcess

GROUP = "billing"
RESPONSE_SECONDS = 60.0
MEMBER_ID = "<member id>"


def conversation() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The requests and responses in docs/messages.md."""
    text = (documents.ROOT / "docs" / "messages.md").read_text()
    text = text[text.index("## A complete conversation") : text.index("# Reference")]
    messages = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL)]
    return list(zip(messages[::2], messages[1::2], strict=True))


def test_generated_parts_of_the_documents_are_current() -> None:
    assert documents.outdated() == [], "run `make documents`"


def test_a_document_without_the_markers_of_a_generated_part_is_an_error() -> None:
    with pytest.raises(ValueError, match="no place for the generated part 'reference'"):
        documents.with_generated_parts("# Nothing here\n", {"reference": "x"})


def headings(document: Path) -> set[str]:
    """The names by which links reach the headings of a document."""
    titles = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_link_between_documents_reaches_its_heading() -> None:
    for document in [documents.ROOT / "README.md", *(documents.ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!http)([^)#]*(?:#[^)]*)?)\)", document.read_text()):
            file, _, heading = target.partition("#")
            reached = document.parent / file if file else document
            assert reached.exists(), f"{document.name}: {target}"
            assert not heading or heading in headings(reached), f"{document.name}: {target}"


def test_the_schema_accepts_every_message_of_the_conversation() -> None:
    validator = jsonschema.Draft202012Validator(schema.json_schema([REBALANCES]))
    for request, response in conversation():
        validator.validate(request)
        validator.validate(response)


def test_the_schema_refuses_a_request_that_lacks_a_field() -> None:
    request, _ = conversation()[0]
    del request["body"]["sessionTimeoutMs"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema.json_schema([REBALANCES])).validate(request)


def test_every_api_has_a_section_in_the_reference() -> None:
    reference = schema.markdown_reference([REBALANCES])
    assert all(f"### {name}\n" in reference for name in APIS)


def test_the_documented_conversation_is_reproducible(coordinator: CoordinatorProcess) -> None:
    """Play the conversation with a plain producer and consumer and the default partitioner."""
    topics = coordinator.topics
    consumer = Consumer({"bootstrap.servers": coordinator.bootstrap_servers, "group.id": "unused"})
    producer = Producer({"bootstrap.servers": coordinator.bootstrap_servers})
    replies = TopicPartition(topics.responses, 0)
    replies.offset = consumer.get_watermark_offsets(replies, RESPONSE_SECONDS)[1]
    consumer.assign([replies])
    member_id = MEMBER_ID
    run = uuid.uuid4().hex
    for request, response in conversation():
        correlation_id = f"{request['correlationId']}-{run}"
        sent = json.dumps(request | {"correlationId": correlation_id}).replace(MEMBER_ID, member_id)
        producer.produce(topics.requests, key=GROUP, value=sent)
        assert producer.flush(RESPONSE_SECONDS) == 0
        received = await_response(consumer, correlation_id)
        if member_id == MEMBER_ID:
            member_id = received["body"]["memberId"]
        expected = json.dumps(response | {"correlationId": correlation_id}).replace(MEMBER_ID, member_id)
        assert received == json.loads(expected)
    consumer.close()


def await_response(consumer: Consumer, correlation_id: str) -> Any:
    """Return the response with this correlation id; skip those of other clients."""
    while record := consumer.poll(RESPONSE_SECONDS):
        assert record.error() is None
        if record.key() == correlation_id.encode():
            return msgspec.json.decode(record.value() or b"")
    raise AssertionError(f"no response to {correlation_id}")
