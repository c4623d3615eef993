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
from docs import message_tables
from streaming.contract import schema
from streaming.explain.publishing.contract import REBALANCES
from tests.docs.markdown import DOCUMENTS, ROOT, anchors, links, name_of, titles
from tests.support.coordinator_process import CoordinatorProcess

SOURCES = ("coordinator_logic", "streaming", "tests")
NAMED = re.compile(r'(?:"([^"\n]+)" in )?(docs/[\w/-]+\.md)\b')
"""A document that code names, with one of its headings if that is named."""

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


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_link_of_a_document_reaches_its_heading(document: Path) -> None:
    for target in links(document):
        file, _, anchor = target.partition("#")
        reached = document.parent / file if file else document
        assert reached.exists(), target
        assert not anchor or anchor in anchors(reached), target


def test_every_document_that_the_code_names_exists() -> None:
    named = [
        (path.relative_to(ROOT).as_posix(), heading, ROOT / document)
        for source in SOURCES
        for path in (ROOT / source).rglob("*.py")
        for heading, document in NAMED.findall(path.read_text())
    ]
    assert len(named) > 10
    missing = [(path, document) for path, _, document in named if not document.exists()]
    assert missing == []
    assert [each for each in named if each[1] and each[1] not in titles(each[2])] == []


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
    reference = message_tables.markdown([REBALANCES])
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
    # Other tests of the documents have a group of that name.
    group = f"{GROUP}-{run}"

    def here(message: dict[str, Any], correlation_id: str) -> str:
        text = json.dumps(message | {"correlationId": correlation_id})
        return text.replace(MEMBER_ID, member_id).replace(f'"{GROUP}"', f'"{group}"')

    for request, response in conversation():
        correlation_id = f"{request['correlationId']}-{run}"
        producer.produce(topics.requests, key=group, value=here(request, correlation_id))
        assert producer.flush(RESPONSE_SECONDS) == 0
        received = await_response(consumer, correlation_id)
        if member_id == MEMBER_ID:
            member_id = received["body"]["memberId"]
        expected = json.loads(here(response, correlation_id))
        if "directoryChange" in expected:
            expected["directoryChange"]["incarnation"] = received["directoryChange"]["incarnation"]
        assert received == expected
    consumer.close()


def await_response(consumer: Consumer, correlation_id: str) -> Any:
    """Return the response with this correlation id; skip those of other clients."""
    while record := consumer.poll(RESPONSE_SECONDS):
        assert record.error() is None
        if record.key() == correlation_id.encode():
            return msgspec.json.decode(record.value() or b"")
    raise AssertionError(f"no response to {correlation_id}")
