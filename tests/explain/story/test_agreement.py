"""Whatever clients do, the story agrees with the group's state, and every part of it can be shown."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import event, given
from hypothesis import strategies as st

from coordinator_logic.errors import Error
from coordinator_logic.groups.classic.records import StateChanged
from coordinator_logic.groups.consumer.records import GroupEpochBumped
from coordinator_logic.records import JournalEntry
from streaming.explain.page.lanes import Lane, Lanes
from streaming.explain.page.of_group import ToldGroup, page_of_story
from streaming.explain.page.trace import trace_of
from streaming.explain.story.model import Rebalance, Story
from streaming.explain.story.words import lines_of
from tests.journal.observed import observed
from tests.logic.driver import Driven
from tests.logic.groups.consumer.driver import REVOKE_MS, SESSION_MS, DrivenConsumers
from tests.logic.strategies import STORIES, Move
from tests.logic.strategies import Story as Clients
from tests.support.parts import classic
from tests.support.properties import examples

SOME = examples(60)


def told(entries: Sequence[JournalEntry], group_id: str) -> tuple[Story, Lanes]:
    """The story and the lanes of a journal."""
    group = observed(ToldGroup(group_id), entries)
    return group.teller.story(), group.lanes


def in_order(rebalances: Sequence[Rebalance]) -> bool:
    """Whether the rebalances follow each other, their phases are in order, and only the last one goes on."""
    times = [time for one in rebalances for time in (one.began, one.joined, one.ended) if time is not None]
    return times == sorted(times) and all(one.ended is not None for one in rebalances[:-1])


def members_are_counted(story: Story) -> bool:
    """Whether each rebalance begins with as many members as the one before ended with, and so the group now."""
    ends = [0, *(one.members_after for one in story.rebalances if one.ended is not None)]
    begins = [one.members_before for one in story.rebalances]
    if len(ends) > len(begins):
        begins.append(len(story.now.members))
    return ends == begins


def occupied(lanes: Sequence[Lane]) -> dict[str, frozenset[tuple[str, int]]]:
    """The members that are in a lane now, and what they own there."""
    return {
        lane.stays[-1].member_id: lane.owned[-1][1] if lane.owned else frozenset() for lane in lanes if not lane.is_free
    }


def showable(story: Story, lanes: Lanes) -> bool:
    """Whether the story can be told in words, as a page and as a trace."""
    return bool(list(lines_of(story)) and page_of_story(story, lanes) and trace_of(story, lanes))


@given(STORIES)
@SOME
def test_the_story_of_a_classic_group_agrees_with_its_state(moves: list[Move]) -> None:
    driven = Driven()
    clients = Clients(driven)
    for move in moves:
        clients.play(move)
    story, lanes = told(driven.journal, driven.group_id)
    begun = [entry for entry in driven.journal if _begins(entry)]
    assert [one.began for one in story.rebalances] == [entry.timestamp for entry in begun]
    assert in_order(story.rebalances)
    assert members_are_counted(story)
    if driven.exists:
        group = driven.group
        assert (story.now.state, story.now.since) == (group.state.value, group.part.state_timestamp)
        assert (story.now.generation or 0) == group.generation
        assert {one.member for one in story.now.members} == classic(group).members.keys()
    else:
        assert not driven.journal or (story.now.state, story.now.members) == ("Dead", [])
    assert occupied(lanes.lanes).keys() == {one.member for one in story.now.members}
    if driven.journal:
        event(f"{len(story.rebalances)} rebalances")
        assert showable(story, lanes)


@given(STORIES, st.floats(0, 1))
@SOME
def test_a_part_of_a_journal_is_told_as_far_as_it_goes(moves: list[Move], share: float) -> None:
    driven = Driven()
    clients = Clients(driven)
    for move in moves:
        clients.play(move)
    part = driven.journal[int(share * len(driven.journal)) :]
    story, lanes = told(part, driven.group_id)
    assert [one.began for one in story.rebalances] == [entry.timestamp for entry in part if _begins(entry)]
    assert in_order(story.rebalances)
    if part:
        assert showable(story, lanes)


class Step(NamedTuple):
    """What one of the members of a consumer group does after a delay."""

    member: str
    action: str
    delay_ms: int


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from("abcd"),
        st.sampled_from(["beat"] * 8 + ["keep", "enter", "leave", "grow", "other topics"]),
        st.sampled_from([0, 0, 100, 1_000, REVOKE_MS // 2, REVOKE_MS + 1, SESSION_MS // 2]),
    ),
    min_size=10,
    max_size=60,
)


class Members:
    """Members that follow what they are answered; "keep" is a heartbeat of one that does not revoke yet."""

    def __init__(self, driven: DrivenConsumers) -> None:
        self._driven = driven
        self._epochs: dict[str, int] = {}
        self._owned: dict[str, dict[str, set[int]]] = {}
        self._partitions = 3

    def play(self, step: Step) -> None:
        """Carry out a step."""
        self._driven.sleep(step.delay_ms)
        member, names = step.member, ["t"]
        if step.action == "grow":
            self._partitions += 1
        elif step.action == "other topics":
            names = ["t", "u"]
        if step.action == "enter" or member not in self._epochs:
            self._epochs[member], self._owned[member] = 0, {}
        elif step.action == "leave":
            self._driven.beat(member, -1)
            del self._epochs[member]
            return
        fields: dict[str, Any] = {"rebalance_timeout_ms": REVOKE_MS, "subscribed_topic_names": names}
        says_all = self._epochs[member] == 0 or step.action == "other topics"
        answer = self._driven.beat(
            member,
            self._epochs[member],
            owned=self._owned[member],
            topics={"t": self._partitions, "u": 2},
            **(fields if says_all else {}),
        )
        if answer.error is not Error.NONE:
            del self._epochs[member]
            return
        self._epochs[member] = answer.body.member_epoch
        if answer.body.assignment is not None and step.action != "keep":
            listed = answer.body.assignment.topic_partitions
            self._owned[member] = {entry.topic_id: set(entry.partitions) for entry in listed}


@given(STEPS)
@SOME
def test_the_story_of_a_consumer_group_agrees_with_its_state(steps: list[Step]) -> None:
    driven = DrivenConsumers()
    members = Members(driven)
    for step in steps:
        members.play(step)
    story, lanes = told(driven.journal, driven.group_id)
    assert [one.generation for one in story.rebalances] == [
        entry.record.epoch for entry in driven.journal if isinstance(entry.record, GroupEpochBumped)
    ]
    assert in_order(story.rebalances)
    assert members_are_counted(story)
    group, consumer = driven.group, driven.consumer
    assert (story.now.state, story.now.since) == (group.state.value, group.part.state_timestamp)
    assert story.now.generation == consumer.epoch
    names = {topic.topic_id: name for name, topic in consumer.topics.items()}
    assert {one.member: (one.epoch, _places(one.partitions)) for one in story.now.members} == {
        member_id: (
            one.epoch,
            {(names.get(topic, topic), number) for topic in one.assigned for number in one.assigned[topic]},
        )
        for member_id, one in consumer.members.items()
    }
    assert {one.member for one in story.now.waits_for} <= consumer.members.keys()
    held = {
        member_id: frozenset((names.get(topic, topic), number) for topic, number in one.held_partitions())
        for member_id, one in consumer.members.items()
    }
    assert occupied(lanes.lanes) == held
    event(f"{len(story.rebalances)} epochs")
    assert showable(story, lanes)


def _begins(entry: JournalEntry) -> bool:
    return isinstance(entry.record, StateChanged) and entry.record.to_state == "PreparingRebalance"


def _places(partitions: dict[str, list[int]]) -> set[tuple[str, int]]:
    return {(topic, number) for topic, numbers in partitions.items() for number in numbers}
