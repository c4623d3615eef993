"""Pages of scripted groups."""

from streaming.explain.lag import Lag
from streaming.explain.page.data import Page, page_of
from streaming.explain.page.of_group import page_of_story
from streaming.explain.story.words import now_lines
from tests.explain.page.scripted import ScriptedGroup, told


def data_page(group: ScriptedGroup, group_id: str = "billing") -> Page:
    """The data of a group's page."""
    story, lanes = told(group.journal, group_id)
    return page_of(story, lanes, list(now_lines(story)))


def html_page(group: ScriptedGroup, group_id: str = "billing", lag: Lag | None = None) -> str:
    """A group's page."""
    return page_of_story(*told(group.journal, group_id), lag)
