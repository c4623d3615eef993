"""A group matches topics with patterns a share at a time, and matches nothing twice."""

from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from coordinator_logic.config import FIRST_LOGIC_VERSION_BOUNDING_PATTERNS, LOGIC_VERSION
from coordinator_logic.errors import Error
from coordinator_logic.groups.consumer import limits
from coordinator_logic.groups.consumer.patterns import matching_topics
from coordinator_logic.groups.consumer.rebalance import matching
from coordinator_logic.groups.consumer.rebalance import patterns as resolution
from coordinator_logic.groups.consumer.records import PatternsResolved
from coordinator_logic.messages import TopicsDeletedRequest
from tests.logic.groups.consumer.driver import DrivenConsumers, description
from tests.logic.groups.consumer.stories import STORIES, Action, play
from tests.support.parts import consumer_part

EARLIER = {"logic_version": FIRST_LOGIC_VERSION_BOUNDING_PATTERNS - 1}
SHARE_OF_FEW = 4_000
"""Enough for some short names in a second."""
REFRESH_MS = 20_000
TOPICS = {f"t{number:02}": 1 for number in range(20)} | {"u": 1}
ONLY_A_LARGE_PROGRAM = "(x{1000})" * 113


@pytest.fixture
def driven() -> DrivenConsumers:
    return DrivenConsumers(group_consumer_regex_refresh_interval_ms=REFRESH_MS)


def subscribe(driven: DrivenConsumers, member: str, pattern: str, topics: Mapping[str, int] = TOPICS) -> int:
    """Let a member join with a pattern; return its epoch."""
    answer = driven.enter(member, subscribed_topic_names=None, subscribed_topic_regex=pattern, topics=topics)
    assert answer.error is Error.NONE
    return answer.body.member_epoch


def resolutions(driven: DrivenConsumers) -> list[dict[str, list[str]]]:
    return [record.patterns for record in driven.records if isinstance(record, PatternsResolved)]


def beat_until_resolved(driven: DrivenConsumers, member: str, most: int = 50) -> int:
    """Send a heartbeat a second until patterns are resolved; return how many it took."""
    before = len(resolutions(driven))
    for number in range(most):
        if len(resolutions(driven)) > before:
            return number
        driven.sleep(1_000)
        driven.beat(member, driven.consumer.members[member].epoch)
    raise AssertionError("the patterns are not resolved")


def test_little_work_is_done_in_the_turn_that_brings_it(driven: DrivenConsumers) -> None:
    subscribe(driven, "a", "t.*")
    assert resolutions(driven) == [{"t.*": sorted(TOPICS.keys() - {"u"})}]


def test_a_group_without_topics_resolves_its_patterns(driven: DrivenConsumers) -> None:
    epoch = subscribe(driven, "a", "t.*", {})
    assert resolutions(driven) == [{"t.*": []}]
    driven.sleep(REFRESH_MS + 1)
    driven.topics_described(description("t00", 1))
    driven.beat("a", epoch)
    assert resolutions(driven)[-1] == {"t.*": ["t00"]}


def test_much_work_is_done_in_several_turns(driven: DrivenConsumers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "WORK_PER_SECOND", SHARE_OF_FEW)
    subscribe(driven, "a", "t.*")
    assert resolutions(driven) == []
    assert 1 < beat_until_resolved(driven, "a") < len(TOPICS)
    assert resolutions(driven) == [{"t.*": sorted(TOPICS.keys() - {"u"})}]


def test_a_group_has_a_share_of_time_and_not_of_requests(
    driven: DrivenConsumers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "WORK_PER_SECOND", SHARE_OF_FEW)
    epoch = subscribe(driven, "a", "t.*")
    before = driven.consumer.matched
    for _ in range(20):
        driven.beat("a", epoch)
    assert driven.consumer.matched == before
    driven.sleep(1_000)
    driven.beat("a", epoch)
    assert driven.consumer.matched != before


def test_nothing_is_matched_twice(driven: DrivenConsumers) -> None:
    epoch = subscribe(driven, "a", "t.*")
    done = driven.consumer.matching_until
    driven.sleep(REFRESH_MS + 1)
    driven.beat("a", epoch)
    assert len(resolutions(driven)) == 2
    assert driven.consumer.matching_until == done


def test_a_group_keeps_topics_that_it_had_no_time_to_match(
    driven: DrivenConsumers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "WORK_PER_SECOND", 1)
    subscribe(driven, "a", "t.*")
    assert driven.consumer.topics.keys() == TOPICS.keys()


def test_topics_that_are_deleted_meanwhile_are_not_counted(
    driven: DrivenConsumers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "WORK_PER_SECOND", SHARE_OF_FEW)
    subscribe(driven, "a", "t.*")
    driven.sleep(1_000)
    driven.beat("a", driven.consumer.members["a"].epoch)
    (found,) = driven.consumer.matched.values()
    assert 1 < found.number < len(TOPICS)
    driven.send("TopicsDeleted", TopicsDeletedRequest(["t00", "t19"]))
    (left,) = driven.consumer.matched.values()
    assert (left.number, left.topics) == (found.number - 1, found.topics[1:])
    driven.topics_described(description("t00", 1))
    beat_until_resolved(driven, "a")
    assert resolutions(driven) == [{"t.*": sorted(TOPICS.keys() - {"t19", "u"})}]


def test_a_pattern_that_nobody_has_is_forgotten(driven: DrivenConsumers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "WORK_PER_SECOND", SHARE_OF_FEW)
    epoch = subscribe(driven, "a", "t.*")
    assert driven.consumer.matched.keys() == {"t.*"}
    driven.beat("a", epoch, subscribed_topic_regex="u")
    assert driven.consumer.matched.keys() <= {"u"}


def test_a_batch_of_an_earlier_release_has_no_share(driven: DrivenConsumers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "WORK_PER_SECOND", 1)
    driven.config = msgspec.structs.replace(driven.config, **EARLIER)
    subscribe(driven, "a", "t.*")
    assert resolutions(driven) == [{"t.*": sorted(TOPICS.keys() - {"u"})}]


def test_a_pattern_that_an_earlier_release_accepted_keeps_its_topics(driven: DrivenConsumers) -> None:
    pattern = f"t.*|{ONLY_A_LARGE_PROGRAM}"
    assert driven.enter("a", subscribed_topic_regex=pattern).error is Error.INVALID_REGULAR_EXPRESSION
    driven.config = msgspec.structs.replace(driven.config, **EARLIER)
    epoch = subscribe(driven, "a", pattern)
    driven.config = msgspec.structs.replace(driven.config, logic_version=LOGIC_VERSION)
    driven.sleep(REFRESH_MS + 1)
    driven.beat("a", epoch, topics={"t20": 1})
    assert resolutions(driven) == 2 * [{pattern: sorted(TOPICS.keys() - {"u"})}]


@pytest.fixture
def small_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group has room for what one pattern matches, and not for two."""
    for module in (limits, resolution):
        monkeypatch.setattr(module, "MAX_MATCHES_BYTES", 800)


@pytest.mark.usefixtures("small_room")
def test_patterns_for_which_a_group_has_no_room_match_nothing(driven: DrivenConsumers) -> None:
    epochs = {member: subscribe(driven, member, f"t.*|{member}", {}) for member in "ab"}
    driven.topics_described(*(description(name, 1) for name in TOPICS))
    driven.sleep(REFRESH_MS + 1)
    for member, epoch in epochs.items():
        driven.beat(member, epoch)
    matching_some = sorted(TOPICS.keys() - {"u"})
    assert resolutions(driven)[-1] == {"t.*|a": matching_some, "t.*|b": []}
    driven.beat("a", epochs["a"], subscribed_topic_regex="u")
    driven.sleep(REFRESH_MS + 1)
    driven.beat("b", driven.consumer.members["b"].epoch)
    assert resolutions(driven)[-1] == {"u": [], "t.*|b": matching_some}


def test_a_group_has_room_for_what_one_pattern_matches(
    driven: DrivenConsumers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolution, "MAX_MATCHES_BYTES", 1)
    subscribe(driven, "a", "t.*")
    assert resolutions(driven) == [{"t.*": sorted(TOPICS.keys() - {"u"})}]


@pytest.mark.usefixtures("small_room")
def test_a_new_pattern_for_which_a_group_has_no_room_is_refused(driven: DrivenConsumers) -> None:
    subscribe(driven, "a", "t.*|a")
    fields = {"subscribed_topic_names": None, "topics": TOPICS}
    answer = driven.enter("b", subscribed_topic_regex="x" * 100, **fields)
    assert answer.error is Error.GROUP_MAX_SIZE_REACHED
    assert driven.enter("b", subscribed_topic_regex="t.*|a", **fields).error is Error.NONE
    driven.config = msgspec.structs.replace(driven.config, **EARLIER)
    assert driven.enter("c", subscribed_topic_regex="x" * 100, **fields).error is Error.NONE


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(story=STORIES)
def test_a_small_share_changes_only_when_patterns_are_resolved(
    story: list[Action], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as changed:
        changed.setattr(matching, "WORK_PER_SECOND", SHARE_OF_FEW)
        driven = DrivenConsumers()
        play(driven, story)
        if not driven.exists or consumer_part(driven.group) is None:
            return
        members = [each.member_id for each in driven.consumer.members.values() if each.subscribed_topic_regex]
        for _ in range(40 if members else 0):
            driven.sleep(1_000)
            for member in members:
                driven.beat(member, driven.consumer.members[member].epoch)
        consumer = driven.consumer
        for pattern in consumer.subscribed_patterns:
            assert set(consumer.patterns[pattern].topics) == matching_topics(pattern, consumer.topics)
