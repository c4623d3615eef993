"""The part of a story that concerns one member."""

from collections.abc import Container

import msgspec

from streaming.explain.story.model import Rebalance, Story


def concerns(rebalance: Rebalance, members: Container[str]) -> bool:
    """Whether one of these member ids may have caused the rebalance, or came or went in it."""
    ids = [cause.member for cause in rebalance.causes]
    ids += [change.member for change in (*rebalance.came, *rebalance.went)]
    return any(member_id in members for member_id in ids)


def story_of(story: Story, members: Container[str]) -> Story:
    """The story with the rebalances that concern these member ids only; its summary stays that of the group."""
    told = [rebalance for rebalance in story.rebalances if concerns(rebalance, members)]
    return msgspec.structs.replace(story, rebalances=told)
