"""Records of rebalances are what the public contract says."""

import json
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given

from coordinator_logic.records import JournalEntry
from streaming.contract.schema import json_schema
from streaming.explain.publishing.contract import REBALANCES
from streaming.explain.publishing.records import PublishedRebalance, encoded, published
from tests.explain.story.test_of_all_groups import rebalanced_group, told_of_all
from tests.explain.time_travel.test_group_history import played
from tests.logic.groups.consumer.driver import Consumer, DrivenConsumers
from tests.logic.strategies import STORIES, Move
from tests.support.properties import examples


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    """A validator of the records of the topic."""
    schema = json_schema([REBALANCES])
    return jsonschema.Draft202012Validator({"$ref": "#/$defs/PublishedRebalance", "$defs": schema["$defs"]})


def records_of(journal: list[JournalEntry]) -> list[PublishedRebalance]:
    """The records of the rebalances in a journal."""
    return [published(told, {0: 7, 12: 3}) for told in told_of_all(journal)]


@given(moves=STORIES)
@examples(30)
def test_the_schema_accepts_every_record(validator: jsonschema.Draft202012Validator, moves: list[Move]) -> None:
    for record in records_of(played(moves)[0].journal):
        validator.validate(json.loads(encoded(record)))
        assert msgspec.json.decode(encoded(record), type=PublishedRebalance) == record


def test_the_schema_accepts_a_rebalance_of_a_consumer_group_as_one_message_of_all(
    validator: jsonschema.Draft202012Validator,
) -> None:
    driven = DrivenConsumers()
    driven.converge(Consumer(driven, "a").join("t", topics={"t": 2}), Consumer(driven, "b").join("t"))
    record: dict[str, Any] = json.loads(encoded(records_of(driven.journal)[-1]))
    validator.validate(record)
    jsonschema.Draft202012Validator(json_schema([REBALANCES])).validate(record)
    assert (record["groupType"], record["generation"], record["moves"]["moved"]) == ("consumer", 3, 1)
    assert record["journalPositions"] == {"0": 7, "12": 3}
    del record["sequence"]
    with pytest.raises(jsonschema.ValidationError):
        validator.validate(record)


def test_a_record_is_named_by_the_entry_with_which_the_rebalance_began() -> None:
    journal = rebalanced_group("a").journal
    for record in records_of(journal):
        (entry,) = [one for one in journal if (one.incarnation, one.sequence) == (record.incarnation, record.sequence)]
        assert (entry.timestamp, type(entry.record).__name__) == (record.began, "StateChanged")


def test_a_record_that_would_be_too_large_lacks_its_lists_of_members(
    validator: jsonschema.Draft202012Validator,
) -> None:
    *_, record = records_of(rebalanced_group("a").journal)
    whole = encoded(record)
    cut: dict[str, Any] = json.loads(encoded(record, limit=len(whole) - 1))
    validator.validate(cut)
    assert (cut["isCut"], cut["came"], cut["went"], cut["shares"], cut["waitedFor"]) == (True, [], [], [], [])
    assert (cut["sequence"], cut["membersAfter"]) == (record.sequence, record.members_after)
