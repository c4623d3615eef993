"""How a cause is told: it names its member once, and does not quote what every client library says."""

from collections.abc import Callable

import pytest

from streaming.explain.story.model import Trigger
from streaming.explain.story.words import cause_in_short, lines_of
from tests.explain.story.test_story import last, leaving, owning, told
from tests.logic.driver import REBALANCE_MS, SESSION_MS, Driven, reading


def _first_join(driven: Driven) -> None:
    driven.stable_group(1)
    driven.join_new("newcomer")


def _unchanged_leader(driven: Driven) -> None:
    leader, _ = driven.stable_group(2)
    driven.rejoin(leader, reason="group is already rebalancing")


def _leader_that_saw_a_topic_change(driven: Driven) -> None:
    leader, _ = driven.stable_group(2)
    driven.rejoin(leader, reason="cached metadata has changed from {} to {}")


def _other_topics(driven: Driven) -> None:
    _, second = driven.stable_group(2, protocols=reading("orders"))
    driven.rejoin(second, protocols=reading("orders", "returns"))


def _fewer_partitions(driven: Driven) -> None:
    _, second = driven.stable_group(2, protocols=owning("orders", 0, 1))
    driven.rejoin(second, protocols=owning("orders", 0))


def _static_member_returned(driven: Driven) -> None:
    driven.join_with_members(2, static=1)
    driven.join(instance="instance-0", client="client-0")


def _leave(driven: Driven) -> None:
    _, second = driven.stable_group(2)
    driven.send("LeaveGroup", leaving(second, "shutdown"), version=5, client="client-1")


def _expired(driven: Driven) -> None:
    first, _ = driven.stable_group(2)
    driven.sleep_with_heartbeats(SESSION_MS + 1, first)


def _not_synced(driven: Driven) -> None:
    first, second = driven.join_with_members(2)
    driven.sync(first, {first.member_id: b"", second.member_id: b""})
    driven.sleep_with_heartbeats(REBALANCE_MS + 1, first, second)


@pytest.mark.parametrize(
    ("rebalance", "trigger"),
    [
        (_first_join, Trigger.MEMBER_JOINED),
        (_unchanged_leader, Trigger.LEADER_REJOINED),
        (_leader_that_saw_a_topic_change, Trigger.TOPIC_CHANGED),
        (_other_topics, Trigger.SUBSCRIPTION_CHANGED),
        (_fewer_partitions, Trigger.PARTITIONS_GIVEN_UP),
        (_static_member_returned, Trigger.STATIC_MEMBER_RETURNED),
        (_leave, Trigger.MEMBER_LEFT),
        (_expired, Trigger.SESSION_EXPIRED),
        (_not_synced, Trigger.DID_NOT_SYNC),
    ],
)
def test_a_cause_names_its_member_once(rebalance: Callable[[Driven], None], trigger: Trigger) -> None:
    driven = Driven()
    rebalance(driven)
    causes = [cause for one in told(driven).rebalances for cause in one.causes if cause.member is not None]
    assert trigger in {cause.trigger for cause in causes}
    for cause in causes:
        assert cause.member is not None
        assert cause.member not in cause.text
    because = [line for line in lines_of(told(driven)) if line.startswith(("  because: ", "  or perhaps: "))]
    members = {cause.member for cause in causes}
    assert all(line.count(member) <= 1 for line in because for member in members if member is not None)


@pytest.mark.parametrize("said", ["need to re-join with the given member-id: {}", None])
def test_a_first_join_is_told_as_joined(said: str | None) -> None:
    driven = Driven()
    driven.stable_group(1)
    member_id = driven.join(client="newcomer").body.member_id
    driven.join(member_id, client="newcomer", reason=said and said.format(member_id))
    assert (last(driven).cause.trigger, last(driven).cause.text) == (Trigger.MEMBER_JOINED, "joined")
    assert cause_in_short(last(driven)) == f"{member_id}: joined"


def test_a_first_join_keeps_a_reason_of_the_application() -> None:
    driven = Driven()
    driven.stable_group(1)
    member_id = driven.join(client="newcomer").body.member_id
    driven.join(member_id, client="newcomer", reason="deployed 2.1")
    assert last(driven).cause.text == "joined: deployed 2.1"
