"""No request of any API holds a batch, whichever of its fields a client makes large.

Each field of each request grows alone, filled in several ways, in groups of each type. The time from the record's bytes
to the rows and the stored group is that of the job.
"""

from collections.abc import Mapping
from functools import cache, partial
from random import Random
from typing import Any, NamedTuple

import msgspec
import pytest

from coordinator_logic.apis import APIS
from coordinator_logic.config import LOGIC_VERSION, CoordinatorConfig
from streaming.contract.topics import TopicNames
from streaming.job.group_batch.processing import Outcome, process
from streaming.job.group_batch.settings import Settings
from streaming.job.group_batch.state_row import StateRow
from streaming.job.rows.records import KafkaRecord
from tests.growth.growing_requests import Grown, grown_requests
from tests.growth.measured import check_growth, longest_piece_seconds, processor_seconds_of
from tests.support.request_events import envelope

GROUP_ID, NOW = "group", 1_700_000_000_000
SETTINGS = Settings(TopicNames(), 1, CoordinatorConfig(group_initial_rebalance_delay_ms=0, logic_version=LOGIC_VERSION))
CHARACTERS, ENTRIES = 16_000, 500
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
HOSTILE_PATTERNS = [
    "(.?){999}",
    "(?P<name>.?){999}",
    ".*1.{200}|.*2.{201}|.*x.{202}",
    ".*[0x].{30}",
    "([x0-9]?){999}",
    "([x0-9]?){999}" * 43,
    "(x?.{1,3}){200}",
    r"\pL{1000}",
    "(x{1000})" * 113,
]
"""The worst of 1,024 bytes: what each group captures, too many states to keep, and what is too large to be read."""
PLAIN: Mapping[str, object] = {
    "groupId": GROUP_ID,
    "groups": GROUP_ID,
    "groupsNames": GROUP_ID,
    "groupIds": GROUP_ID,
    "sessionTimeoutMs": 45_000,
    "rebalanceTimeoutMs": 60_000,
    "protocolType": "consumer",
    "protocolName": "range",
    "producerId": 1,
    "producerEpoch": 0,
    "topicId": TOPIC_ID,
    "reason": "because",
    "committedMetadata": "",
    "keyType": 0,
    "force": False,
    "listsAll": False,
}


class Sender(NamedTuple):
    """Who sends the requests: the stored group, and the values of fields that name a member of it."""

    stored: StateRow | None
    values: Mapping[str, object]


def run(stored: StateRow | None, api: str, version: int, body: Any, offset: int = 0) -> Outcome:
    """The outcome of a batch with one request."""
    return process(SETTINGS, GROUP_ID, [record(api, version, body, offset)], stored, NOW)


def record(api: str, version: int, body: Any, offset: int) -> KafkaRecord:
    """The record of a request."""
    key = body.get("groupId", GROUP_ID)
    return KafkaRecord(NOW, 0, offset, key.encode(), msgspec.json.encode(envelope(api, version, body)))


@cache
def nobody() -> Sender:
    return Sender(None, {**PLAIN, "memberId": "", "generationId": -1, "generationIdOrMemberEpoch": -1})


@cache
def classic_member() -> Sender:
    """A member of a classic group that the leader has yet to give its assignment."""
    member = "member"
    body = {"groupId": GROUP_ID, "memberId": "", "protocolType": "consumer", "sessionTimeoutMs": 45_000}
    joined = run(None, "JoinGroup", 3, {**body, "protocols": [{"name": "range", "metadata": ""}]})
    assert joined.state is not None
    answer = next(row for row in joined.rows if row.topic == SETTINGS.topics.responses)
    member = str(answer.value).split('"memberId":"')[1].split('"')[0]
    return Sender(joined.state, {**PLAIN, "memberId": member, "generationId": 1, "generationIdOrMemberEpoch": 1})


def heartbeat(epoch: int, **fields: object) -> dict[str, object]:
    return {"groupId": GROUP_ID, "memberId": "member", "memberEpoch": epoch, **fields}


@cache
def consumer_member() -> Sender:
    """A member of a consumer group, whose other members have patterns."""
    topics = [{"name": f"topic-{n}", "topicId": f"{n:022}", "partitions": 3} for n in range(100)]
    state = None
    # More patterns would use up the share of a group: what it cannot match it keeps, which is another work.
    for number in range(5):
        subscription = (
            {"subscribedTopicRegex": f"topic-{number}.*"} if number else {"subscribedTopicNames": ["topic-1"]}
        )
        full = {"rebalanceTimeoutMs": 60_000, "topicPartitions": [], "topics": topics, **subscription}
        body = heartbeat(0, **full) | ({"memberId": f"other-{number}"} if number else {})
        state = run(state, "ConsumerGroupHeartbeat", 1, body, number).state
    values = {
        **PLAIN,
        "memberId": "member",
        "memberEpoch": 0,
        "topicPartitions": [],
        "generationId": 2,
        "generationIdOrMemberEpoch": 2,
    }
    return Sender(state, values)


@cache
def consumer_member_that_stays() -> Sender:
    stored, values = consumer_member()
    owned = [{"topicId": TOPIC_ID, "partitions": [0]}]
    return Sender(stored, {**values, "memberEpoch": 2, "topicPartitions": owned})


SENDERS = {each.__name__: each for each in (nobody, classic_member, consumer_member, consumer_member_that_stays)}


def version_of(api: str, grown: Grown) -> int:
    """A version that reads the field: the last one, but for fields of earlier ones."""
    of_one_group = api == "OffsetFetch" and not grown.name.startswith("groups")
    return 7 if of_one_group else APIS[api].max_version


@pytest.mark.parametrize("sender", SENDERS)
@pytest.mark.parametrize("api", APIS)
def test_no_field_of_a_request_holds_a_batch(api: str, sender: str) -> None:
    stored, values = SENDERS[sender]()
    wrong = {}
    for grown in grown_requests(APIS[api].request_type, values):
        version = version_of(api, grown)

        def measure(size: int, grown: Grown = grown, version: int = version) -> float:
            batch = [record(api, version, grown.make(size), 100)]
            return processor_seconds_of(lambda: process(SETTINGS, GROUP_ID, batch, stored, NOW + 1))

        found = check_growth(measure, ENTRIES if grown.is_list else CHARACTERS)
        if found is not None:
            wrong[grown.name] = found
    assert wrong == {}


RANDOM = Random(1)
LONG_TOPICS: list[dict[str, Any]] = [
    {"name": "".join(RANDOM.choices("01x", k=249)), "topicId": f"{number:022}", "partitions": 1}
    for number in range(1_000)
]
"""RE2 makes other states for each of them."""


@pytest.mark.parametrize(
    ("api", "name", "size"),
    [
        ("FindCoordinator", "coordinatorKeys: equal entries", 143_000),
        ("OffsetFetch", "topics.partitionIndexes: equal entries", 500_000),
        ("TopicsDeleted", "topics: different entries", 77_000),
    ],
)
def test_a_megabyte_of_entries_that_cost_a_group_little_does_not_hold_a_batch(api: str, name: str, size: int) -> None:
    stored, values = consumer_member()
    grown = next(each for each in grown_requests(APIS[api].request_type, values) if each.name == name)
    batch = [record(api, version_of(api, grown), grown.make(size), 100)]
    work = partial(process, SETTINGS, GROUP_ID, batch, stored, NOW + 1)
    assert min(processor_seconds_of(work) for _ in range(3)) <= longest_piece_seconds()


class PatternGroup:
    """A consumer group whose members have patterns, and the processor time of its batches."""

    def __init__(self) -> None:
        self.state: StateRow | None = None
        self.now = NOW
        self.resolutions = 0

    def seconds_of(self, *heartbeats: dict[str, object]) -> float:
        """The processor time of a batch; the next one is a second later."""
        batch = [
            record("ConsumerGroupHeartbeat", 1, body, place)._replace(timestamp=self.now)
            for place, body in enumerate(heartbeats)
        ]
        outcomes: list[Outcome] = []
        seconds = processor_seconds_of(
            lambda: outcomes.append(process(SETTINGS, GROUP_ID, batch, self.state, self.now))
        )
        self.state = outcomes[0].state
        self.resolutions += sum("PatternsResolved" in str(row.value) for row in outcomes[0].rows)
        self.now += 1_000
        return seconds


def joining(member: str, pattern: str, **fields: object) -> dict[str, object]:
    full = {"rebalanceTimeoutMs": 60_000, "topicPartitions": [], "subscribedTopicRegex": pattern, **fields}
    return heartbeat(0, **full) | {"memberId": member}


@pytest.mark.parametrize("pattern", HOSTILE_PATTERNS)
def test_patterns_of_several_members_and_a_thousand_topics_do_not_hold_a_batch(pattern: str) -> None:
    longest: list[float] = []
    for attempt in range(3):
        group = PatternGroup()
        # What a process remembers of a pattern does not count.
        members = [joining(f"member-{number}", f"{pattern}|{attempt}|{number}") for number in range(3)]
        batches = [group.seconds_of(members[0] | {"topics": LONG_TOPICS})]
        batches += [group.seconds_of(each) for each in members * 3]
        longest = [min(pair) for pair in zip(batches, longest or batches, strict=True)]
    assert max(longest) <= longest_piece_seconds()


def test_heartbeats_of_a_batch_share_what_their_group_may_match() -> None:
    pattern, seconds = HOSTILE_PATTERNS[0], []
    for attempt in range(3):
        group = PatternGroup()
        first = joining("member", f"{pattern}|{attempt}", topics=LONG_TOPICS)
        stays = heartbeat(1) | {"memberId": "member"}
        seconds.append(group.seconds_of(first, *[stays] * 20))
    assert min(seconds) <= longest_piece_seconds()


def test_what_many_patterns_match_together_does_not_hold_a_batch() -> None:
    group = PatternGroup()
    members = [joining(f"member-{number}", f".*|{number}") for number in range(40)]
    group.seconds_of(members[0] | {"topics": LONG_TOPICS})
    longest = max(group.seconds_of(*members) for _ in range(80))
    assert group.resolutions
    assert longest <= 10 * longest_piece_seconds(), "each of these batches is measured once"


def test_patterns_and_a_thousand_topics_are_resolved_in_a_few_batches() -> None:
    group = PatternGroup()
    names = [f"orders-of-the-european-branch-{number:010}" for number in range(1_000)]
    topics = [{"name": name, "topicId": TOPIC_ID, "partitions": 1} for name in names]
    group.seconds_of(joining("member", "orders-.*", topics=topics))
    assert group.resolutions == 1


def test_topics_of_a_member_are_not_matched_with_the_patterns_of_all_others() -> None:
    topics = [{"name": f"topic-{number}", "topicId": TOPIC_ID, "partitions": 1} for number in range(ENTRIES)]
    state = None
    for number in range(200):
        joining = {"rebalanceTimeoutMs": 60_000, "topicPartitions": [], "subscribedTopicRegex": f"other-{number}.*"}
        body = heartbeat(0, **joining) | {"memberId": f"other-{number}"}
        state = run(state, "ConsumerGroupHeartbeat", 1, body, number).state

    def measure() -> float:
        joining = {"rebalanceTimeoutMs": 60_000, "topicPartitions": [], "subscribedTopicRegex": "topic-.*"}
        batch = [record("ConsumerGroupHeartbeat", 1, heartbeat(0, topics=topics, **joining), 200)]
        return processor_seconds_of(partial(process, SETTINGS, GROUP_ID, batch, state, NOW))

    assert min(measure() for _ in range(3)) <= longest_piece_seconds()
