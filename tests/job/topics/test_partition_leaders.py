"""Which errors of ListOffsets are waited for, and for how long."""

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException

from streaming.job.topics.partition_leaders import NOT_YET_LEADER, once_leaders_answer


def failing_first(*codes: int) -> Iterator[KafkaException]:
    yield from (KafkaException(KafkaError(code)) for code in codes)


@pytest.mark.parametrize("code", sorted(NOT_YET_LEADER))
def test_a_leader_that_does_not_lead_yet_is_asked_again(code: int) -> None:
    failures = failing_first(code, code)

    def ask() -> str:
        for failure in failures:
            raise failure
        return "an offset"

    assert once_leaders_answer(ask) == "an offset"


# These are the errors after which Kafka's own admin client asks again: InvalidMetadataException's, and
# OFFSET_NOT_AVAILABLE (ListOffsetsHandler).
@pytest.mark.parametrize("name", ["FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "OFFSET_NOT_AVAILABLE"])
def test_epochs_and_offsets_that_brokers_do_not_know_yet_are_among_them(name: str) -> None:
    assert getattr(KafkaError, name) in NOT_YET_LEADER


def test_a_leader_that_never_answers_is_given_up_at_the_limit() -> None:
    def ask() -> str:
        raise KafkaException(KafkaError(KafkaError.UNKNOWN_LEADER_EPOCH))

    with pytest.raises(KafkaException, match="UNKNOWN_LEADER_EPOCH"):
        once_leaders_answer(ask, limit_seconds=0.0)


def test_another_error_is_raised_at_once() -> None:
    failures = failing_first(KafkaError.TOPIC_AUTHORIZATION_FAILED)

    def ask() -> str:
        for failure in failures:
            raise failure
        return "asked again"

    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        once_leaders_answer(ask)
