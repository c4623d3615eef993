"""The page of a group, from its journal."""

from collections.abc import Callable, Sequence

from coordinator_logic.records import JournalEntry
from streaming.client.librdkafka import LibrdkafkaConfig
from streaming.explain.lag import CommittedOverTime, Lag
from streaming.explain.page.data import page_of
from streaming.explain.page.lanes import Lanes
from streaming.explain.page.writing import UTC, Picture, html_of, picture_of
from streaming.explain.story.model import Story
from streaming.explain.story.telling import StoryTeller
from streaming.explain.story.words import now_lines
from streaming.journal.entries import journal_entry, page_entry
from streaming.journal.fold import GroupFold, Observer
from streaming.journal.group_journal import GroupJournal
from streaming.journal.reader import CLIENT_ID, JournalReader


class ToldGroup(Observer):
    """A group's story and lanes, and with ``with_lag`` its committed offsets over time.

    They begin at ``since``, in ms; earlier entries tell how the group was then.
    """

    def __init__(self, group_id: str, since: int = 0, *, with_lag: bool = False) -> None:
        self.group_id = group_id
        self.teller = StoryTeller(group_id, since)
        self.lanes = Lanes(self.teller)
        self.committed = CommittedOverTime() if with_lag else None

    @property
    def decode(self) -> Callable[[bytes], JournalEntry]:
        """Reads an entry as far as it is needed."""
        return page_entry if self.committed is None else journal_entry

    def on_entry(self, entry: JournalEntry) -> None:
        self.teller.on_entry(entry)
        self.lanes.on_entry(entry)
        if self.committed is None:
            return
        if self.teller.has_entries:
            self.committed.on_entry(entry)
        else:
            self.committed.note_before(entry)

    def begin(self) -> None:
        """Begin without an entry."""
        self.teller.begin()
        self.lanes.begin(self.teller.first)

    def on_turn(self, turn: Sequence[JournalEntry]) -> None:
        self.teller.on_turn(turn)


def page_of_group(config: LibrdkafkaConfig, topic: str, group_id: str, timeout: float) -> str:
    """The page of everything that the journal has of a group; arguments and errors as of :class:`JournalReader`."""
    told = read_group(config, topic, timeout, ToldGroup(group_id))
    return page_of_story(told.teller.story(), told.lanes)


def read_group(
    config: LibrdkafkaConfig, topic: str, timeout: float, told: ToldGroup, client_id: str = CLIENT_ID
) -> ToldGroup:
    """Add what the journal has of a group; other arguments as of :class:`JournalReader`."""
    fold = GroupFold(told)
    with JournalReader(config, topic, timeout, client_id, told.decode) as reader:
        for entry in GroupJournal(reader, told.group_id).entries():
            fold.add(entry)
    return told


def page_of_story(story: Story, lanes: Lanes, lag: Lag | None = None, zone: str = UTC) -> str:
    """The page of a story and its lanes, and of the lag if it was asked for; ``zone`` as of :func:`html_of`."""
    return html_of(page_of(story, lanes, list(now_lines(story)), lag), zone)


def picture_of_story(story: Story, lanes: Lanes) -> Picture:
    """The picture on that page, as a part of another one."""
    return picture_of(page_of(story, lanes, list(now_lines(story))))
