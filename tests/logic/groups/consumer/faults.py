"""Faults of the logic of consumer groups that the tests must catch, each planted by changing a line of a function."""

import inspect
from collections.abc import Callable
from textwrap import dedent
from types import FunctionType
from typing import Any, NamedTuple

import pytest

from coordinator_logic.groups.consumer import epochs
from coordinator_logic.groups.consumer import reconciliation as steps
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.rebalance import heartbeats, membership, patterns, targets, topics
from coordinator_logic.groups.consumer.requests import heartbeat, join_group
from coordinator_logic.groups.conversions import classic_to_consumer, consumer_to_classic
from tests.logic.exhaustive.consumers.scopes import SCOPES
from tests.logic.exhaustive.consumers.search import Search
from tests.logic.groups.consumer import test_batches, test_heartbeat, test_migration
from tests.logic.groups.consumer.driver import DrivenConsumers

Check = Callable[[], object]

MIXED = "one that speaks the classic protocol"


class Fault(NamedTuple):
    """A line of a function, what stands there instead, and the check that catches it with an ``AssertionError``."""

    function: Any
    line: str
    instead: str
    check: Check


def plant(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change the function, wherever it was imported, until the test ends.

    The line must occur once in the function, so that a fault follows the code that it is planted in.
    """
    function = fault.function
    assert isinstance(function, FunctionType)
    source = dedent(inspect.getsource(function))
    assert source.count(fault.line) == 1, f"{function.__qualname__} has {source.count(fault.line)} times: {fault.line}"
    names: dict[str, Any] = {}
    exec(source.replace(fault.line, fault.instead), dict(function.__globals__), names)
    monkeypatch.setattr(function, "__code__", names[function.__name__].__code__)


def searched(scope: str) -> Check:
    """The exhaustive search of a scope."""
    return lambda: Search(SCOPES[scope]).run()


def played(test: Callable[[DrivenConsumers], None]) -> Check:
    """A test that drives a group."""
    return lambda: test(DrivenConsumers())


FAULTS = {
    "any member epoch is accepted": Fault(
        epochs.check_heartbeat_epoch,
        "return Error.NONE if received < member.epoch and response_was_lost else Error.FENCED_MEMBER_EPOCH",
        "return Error.NONE",
        searched("two"),
    ),
    "the previous epoch is accepted whatever the member owns": Fault(
        epochs.check_heartbeat_epoch, " and owned is not None and member.is_assigned_all(owned)", "", searched("two")
    ),
    "a static member with another epoch is accepted": Fault(
        membership.find_sender,
        "return _check_epoch(static, body.member_epoch, owned) or Sender(static)",
        "return Sender(static)",
        searched("a static one"),
    ),
    "another process takes an instance id that is in use": Fault(
        membership.find_sender,
        "if static.classic is None and static.epoch != STATIC_LEAVE_EPOCH:",
        "if False:",
        searched("a static one"),
    ),
    "another process speaks for an instance": Fault(
        membership._check_static, "if static.member_id != member_id:", "if False:", searched("a static one")
    ),
    "a partition is given before its owner has revoked it": Fault(
        steps._next_assignment, "if is_free(topic_id, partition) or ", "if True or ", searched("two")
    ),
    "a revocation is over before the member confirms it": Fault(
        steps.reconcile, "if _owns_any(owned, member.pending_revocation):", "if False:", searched("two")
    ),
    "a member's epoch does not advance": Fault(
        steps._next_assignment, "epoch=target.epoch,\n", "epoch=member.epoch,\n", searched("two")
    ),
    "a fenced member's partitions are not given to others": Fault(
        membership.fence_members,
        "turn.record(GroupEpochBumped(consumer.epoch + 1, consumer.current_metadata_hash(), because))",
        "del because",
        searched("two"),
    ),
    "a fenced member's target stays": Fault(
        ConsumerGroup.remove, "self.targets.pop(member_id, None)", "pass", searched("two")
    ),
    "a fenced member's partitions are not free in its batch": Fault(
        ConsumerGroup.remove,
        "self.held.difference_update(member.held_partitions())",
        "pass",
        test_batches.test_what_a_member_leaves_behind_is_given_away_in_the_same_batch,
    ),
    "a changed subscription needs no new target": Fault(
        heartbeats._Subscription.__init__, "if names_changed:", "if False:", searched("two subscriptions")
    ),
    "a member may get topics that it no longer subscribes to": Fault(
        steps._next_assignment, " if topic_id in target.topic_ids}", "}", searched("subscriptions and an interval")
    ),
    "a topic that grows is not noticed": Fault(
        ConsumerGroup._apply_topics, "self.refresh_requested = True", "pass", searched("a topic that grows")
    ),
    "a topic that begins to match a pattern is not noticed": Fault(
        topics.learn_topics,
        "consumer.has_new_topics = any(_may_match(matching.match(each, created), created) for each in resolved)",
        "pass",
        searched("a pattern"),
    ),
    "a pattern that matches other topics needs no new target": Fault(
        patterns._resolve,
        "if changed or metadata_hash != consumer.metadata_hash:",
        "if False:",
        searched("a pattern"),
    ),
    "an assignment interval does not end": Fault(
        targets.update_target, " and turn.now < consumer.target_at + interval", "", searched("an assignment interval")
    ),
    "an assignment interval is not kept": Fault(
        targets.update_target,
        "if consumer.target_at and interval and turn.now < consumer.target_at + interval:",
        "if False:",
        test_heartbeat.test_targets_are_computed_once_in_the_assignment_interval,
    ),
    "a heartbeat that changes nothing renews no session": Fault(
        heartbeats.answer_idle_heartbeat, "turn.arm_heartbeat(member.member_id, session)", "pass", searched("two")
    ),
    "a heartbeat that changes something renews no session": Fault(
        heartbeats.process_heartbeat,
        "turn.arm_heartbeat(reconciled.member_id, session_timeout_ms(turn, reconciled))",
        "pass",
        searched("two"),
    ),
    "a heartbeat that may change something takes the short way": Fault(
        heartbeats.sender_of_idle_heartbeat,
        "if consumer.epoch != epoch or consumer.refresh_requested:",
        "if consumer.epoch != epoch:",
        searched("a topic that grows"),
    ),
    "a full request is answered like one that says what has changed": Fault(
        heartbeats.process_heartbeat, "or is_full or", "or", searched("two that lose responses")
    ),
    "a member does not learn that its assignment has changed": Fault(
        heartbeats.process_heartbeat, " or reconciled.assigned != member.assigned", "", searched("two")
    ),
    "a member may revoke for as long as it likes": Fault(
        heartbeats.reconcile_member,
        "arm_timer(turn, REVOCATION, member_id, after.rebalance_timeout_ms, after.epoch)",
        "pass",
        searched("two"),
    ),
    "a commit with a stale epoch is accepted": Fault(
        epochs.check_commit_epoch, "return Error.STALE_MEMBER_EPOCH", "return Error.NONE", searched("two")
    ),
    "a fenced member commits": Fault(
        ConsumerGroup.check_commit,
        "if member is None:\n        return Error.UNKNOWN_MEMBER_ID",
        "if member is None:\n        return Error.NONE",
        searched("two"),
    ),
    "an owner cannot commit after a lost response": Fault(
        epochs.check_commit_epoch,
        "assignment_epoch <= received < member.epoch",
        "False",
        searched("two that lose responses"),
    ),
    "a group is downgraded with a newer member in it": Fault(
        consumer_to_classic.happens_without,
        "any(member.classic is None for member in staying)",
        "False",
        searched("two"),
    ),
    "an upgraded member loses its partitions": Fault(
        classic_to_consumer._converted,
        "assigned.setdefault(topics[name].topic_id, {})[partition] = group.generation",
        "pass",
        played(test_migration.test_a_classic_group_becomes_a_consumer_group_and_its_members_keep_what_they_have),
    ),
    "a classic member does not learn that it must join again": Fault(
        heartbeat._result,
        "if member.epoch < consumer.target_epoch or member.state is MemberState.UNREVOKED_PARTITIONS or is_waiting:",
        "if False:",
        searched(MIXED),
    ),
    "a classic member does not learn that what it waits for is free": Fault(
        heartbeat._result, " or is_waiting:", ":", searched(MIXED)
    ),
    "what a classic member owns is taken from it at once": Fault(
        join_group._let_join,
        "joining.owned, subscription_changed=changed)",
        "{}, subscription_changed=changed)",
        searched(MIXED),
    ),
    "a classic member may take any time to join again": Fault(
        heartbeat._result,
        "arm_member_join_if_absent(turn, member.member_id, member.rebalance_timeout_ms)",
        "pass",
        played(test_migration.test_a_classic_member_that_does_not_join_again_in_time_is_fenced),
    ),
}
