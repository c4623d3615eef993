"""The page of a group, from its journal."""

from streaming.client.librdkafka import LibrdkafkaConfig
from streaming.explain.journal.entries import page_entry
from streaming.explain.journal.group_journal import GroupJournal
from streaming.explain.page.data import page_of
from streaming.explain.page.lanes import Lanes
from streaming.explain.page.writing import html_of
from streaming.explain.story.model import Story
from streaming.explain.story.telling import StoryTeller
from streaming.explain.story.words import now_lines
from streaming.job.backups.journal_reader import CLIENT_ID, JournalReader


def page_of_group(config: LibrdkafkaConfig, topic: str, group_id: str, timeout: float) -> str:
    """The page of everything that the journal has of a group; arguments and errors as of :class:`JournalReader`."""
    teller, lanes = read_group(config, topic, group_id, timeout)
    return page_of_story(teller.story(), lanes)


def read_group(
    config: LibrdkafkaConfig, topic: str, group_id: str, timeout: float, client_id: str = CLIENT_ID, since: int = 0
) -> tuple[StoryTeller, Lanes]:
    """Read a group's journal for its page; ``since`` in ms since the epoch, the rest as :class:`JournalReader`."""
    teller = StoryTeller(group_id)
    lanes = Lanes(teller)
    with JournalReader(config, topic, timeout, client_id, page_entry) as reader:
        for entry in GroupJournal(reader, group_id, since).entries():
            if teller.add(entry):
                lanes.add(entry)
    return teller, lanes


def page_of_story(story: Story, lanes: Lanes) -> str:
    """The page of a story and its lanes."""
    return html_of(page_of(story, lanes, list(now_lines(story))))
