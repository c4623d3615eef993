"""The documents say what the code does: generated parts are current, and the conversation really goes like that."""

import json
import re
import uuid
from typing import Any

import jsonschema
import msgspec
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from coordinator_logic.handlers import APIS
from streaming import documents, schema
from tests.streaming.coordinator_process import CoordinatorProcess

GROUP = "billing"
ANSWER_SECONDS = 60.0
MEMBER_ID = "<member id>"


def conversation() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Requests and their responses, as MESSAGES.md has them."""
    text = (documents.ROOT / "streaming" / "MESSAGES.md").read_text()
    text = text[text.index("## A complete conversation") : text.index("# Reference")]
    messages = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL)]
    return list(zip(messages[::2], messages[1::2], strict=True))


def test_generated_parts_of_the_documents_are_current() -> None:
    assert documents.outdated() == [], "run `make documents`"


def test_a_document_without_a_place_for_its_generated_part_is_an_error() -> None:
    with pytest.raises(ValueError, match="no place for the generated part 'reference'"):
        documents.with_generated_parts("# Nothing here\n", {"reference": "x"})


def test_the_schema_accepts_every_message_of_the_conversation() -> None:
    validator = jsonschema.Draft202012Validator(schema.json_schema())
    for request, response in conversation():
        validator.validate(request)
        validator.validate(response)


def test_the_schema_refuses_a_request_that_lacks_a_field() -> None:
    request, _ = conversation()[0]
    del request["body"]["sessionTimeoutMs"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema.json_schema()).validate(request)


def test_every_api_has_a_section_in_the_reference() -> None:
    reference = schema.markdown_reference()
    assert all(f"### {name}\n" in reference for name in APIS)


def test_the_documented_conversation_goes_as_documented(coordinator: CoordinatorProcess) -> None:
    """With plain producers and consumers, and the key's own partitioner, as anybody would type it."""
    topics = coordinator.topics
    consumer = Consumer({"bootstrap.servers": coordinator.bootstrap_servers, "group.id": "unused"})
    producer = Producer({"bootstrap.servers": coordinator.bootstrap_servers})
    replies = TopicPartition(topics.responses, 0)
    replies.offset = consumer.get_watermark_offsets(replies, ANSWER_SECONDS)[1]
    consumer.assign([replies])
    member_id = MEMBER_ID
    run = uuid.uuid4().hex
    for request, response in conversation():
        correlation_id = f"{request['correlationId']}-{run}"
        sent = json.dumps(request | {"correlationId": correlation_id}).replace(MEMBER_ID, member_id)
        producer.produce(topics.requests, key=GROUP, value=sent)
        assert producer.flush(ANSWER_SECONDS) == 0
        answer = await_answer(consumer, correlation_id)
        if member_id == MEMBER_ID:
            member_id = answer["body"]["memberId"]
        expected = json.dumps(response | {"correlationId": correlation_id}).replace(MEMBER_ID, member_id)
        assert answer == json.loads(expected)
    consumer.close()


def await_answer(consumer: Consumer, correlation_id: str) -> Any:
    """The response with that correlation id; others that share the partition are passed over."""
    while record := consumer.poll(ANSWER_SECONDS):
        assert record.error() is None
        if record.key() == correlation_id.encode():
            return msgspec.json.decode(record.value() or b"")
    raise AssertionError(f"no answer to {correlation_id}")
