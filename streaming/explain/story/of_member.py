"""The part of a story that concerns one member."""

from collections.abc import Container

import msgspec

from streaming.explain.story.model import Rebalance, RefusedRequest, Story


def concerns(rebalance: Rebalance, members: Container[str]) -> bool:
    """Whether one of these members may have caused it, was waited for, came, went, or got other partitions."""
    ids = [cause.member for cause in rebalance.causes]
    ids += [wait.member for wait in rebalance.waited_for]
    ids += [share.member for share in rebalance.shares]
    ids += [change.member for change in (*rebalance.came, *rebalance.went)]
    return any(member_id in members for member_id in ids)


def story_of(story: Story, members: Container[str]) -> Story:
    """The story with what concerns these member ids only; its summary stays that of the group."""
    told = [rebalance for rebalance in story.rebalances if concerns(rebalance, members)]
    refused = story.refused
    if refused is not None:
        refusals = [one for one in refused.refusals if _is_of(one, members)]
        refused = msgspec.structs.replace(refused, refusals=refusals)
    return msgspec.structs.replace(story, rebalances=told, refused=refused)


def _is_of(refusal: RefusedRequest, members: Container[str]) -> bool:
    """Whether one of these members sent it or won over it; its instance id or client id may be among them, too."""
    client_id = refusal.name.rpartition(" at ")[0]
    return any(one in members for one in (refusal.member, refusal.lost_to, refusal.instance_id, client_id))
