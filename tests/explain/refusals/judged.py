"""Judges the requests of a driven group, with its journal as the command reads it."""

import msgspec

from coordinator_logic.config import CoordinatorConfig
from streaming.explain.refusals.judging import Judge, Judgement
from streaming.explain.refusals.told import refused_of
from streaming.explain.story.model import Refused
from streaming.journal.entries import page_entry
from tests.journal.observed import observed
from tests.logic.driver import Driven


def judge_of(driven: Driven, skip: int = 0, first_request: int = 0, config: CoordinatorConfig | None = None) -> Judge:
    """A judge that has taken the journal but its first entries; the first requests are no longer kept."""
    judge = Judge(driven.group_id, driven.log[first_request:], config or driven.config)
    return observed(judge, (page_entry(msgspec.json.encode(entry)) for entry in driven.journal[skip:]))


def verdicts_of(driven: Driven) -> list[Judgement]:
    """The refused requests."""
    return judge_of(driven).finish()


def refused(driven: Driven) -> Refused:
    """The refused requests as a part of the story."""
    return refused_of(judge_of(driven), 0)
