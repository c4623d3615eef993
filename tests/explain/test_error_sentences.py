"""What a person reads in place of an error code."""

import pytest

from coordinator_logic.errors import Error
from streaming.client.answers import Answer
from streaming.client.errors import CoordinatorError, RequestTimedOut
from streaming.contract.output.text import counted
from streaming.explain.error_sentences import SENTENCES, members_sentence, sentence_of, sentence_of_failure


def test_every_error_has_a_sentence_without_a_code() -> None:
    assert SENTENCES.keys() == set(Error) - {Error.NONE}
    for error in SENTENCES:
        sentence = sentence_of(error, "billing")
        assert "{" not in sentence
        assert not any(code.name in sentence for code in Error if code is not Error.NONE)


def test_a_group_that_does_not_exist_is_named() -> None:
    assert sentence_of(Error.GROUP_ID_NOT_FOUND, "nosuch") == "group nosuch does not exist"
    assert sentence_of(4711, "b{0}") == "the coordinator failed at the request for b{0}; its log says why"


def test_members_are_counted() -> None:
    assert members_sentence("billing", 1) == "billing has 1 member: stop it first"
    assert members_sentence("billing", 3) == "billing has 3 members: stop them first"
    assert [counted(1, "entry", "entries"), counted(0, "entry", "entries")] == ["1 entry", "0 entries"]


def test_a_refusal_tells_the_coordinators_reason_and_no_code() -> None:
    with pytest.raises(CoordinatorError) as refused:
        Answer("SetGroupConfig", "billing", Error.INVALID_CONFIG, "no such name", None).unwrap()
    assert sentence_of_failure(refused.value) == "a configuration of billing has a wrong name or value (no such name)"
    assert sentence_of_failure(RequestTimedOut("no answer to Heartbeat")) == "no answer to Heartbeat"
