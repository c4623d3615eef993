"""What a journal claims of a group, whole or cut, compared with the group of the same story."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from coordinator_logic import snapshot
from coordinator_logic.committed_offsets import CommittedOffset
from coordinator_logic.group import Group
from coordinator_logic.records import JournalEntry
from streaming.job.backups.journal_claims import JournalComparison
from tests.logic.driver import GROUP_ID, Driven, Joined
from tests.logic.strategies import STORIES, Move, Story
from tests.support.parts import classic
from tests.support.properties import examples

THOROUGH = examples(120)


def differences(journal: list[JournalEntry], group: Group | None, read_until: int) -> list[str]:
    """What the journal and the state, after the requests before ``read_until``, say differently."""
    positions = {} if group is None else {GROUP_ID: (group.incarnation, group.sequence)}
    comparison = JournalComparison(positions, {0: read_until})
    for entry in journal:
        comparison.add(entry)
    found = [] if group is None else list(comparison.differences_of(group))
    return [*found, *(f"missing {incarnation}" for incarnation in comparison.missing().values())]


def read_by(driven: Driven) -> int:
    """The offset after the last request of the log."""
    return driven.log[-1].place.offset + 1 if driven.log else 0


@given(moves=STORIES, stop=st.integers(0, 100), cut=st.integers(0, 200), repeated=st.integers(0, 200))
@THOROUGH
def test_every_part_of_a_journal_agrees_with_the_state_at_every_moment(
    moves: list[Move], stop: int, cut: int, repeated: int
) -> None:
    driven = Driven(offsets_retention_minutes=1)
    story = Story(driven)
    moments = [(driven.snapshot, read_by(driven))]
    for move in moves:
        story.play(move)
        moments.append((driven.snapshot, read_by(driven)))
    stored, read_until = moments[stop % len(moments)]
    group = None if stored is None else snapshot.decode(stored)
    journal = driven.journal[cut % (len(driven.journal) + 1) :]
    again = journal[repeated % (len(journal) + 1) :]
    assert differences(journal + again, group, read_until) == []


def stable_group() -> tuple[Driven, Group, Joined]:
    """A group of two members with an offset, and the member that has committed it."""
    driven = Driven()
    member, _ = driven.stable_group(2)
    driven.commit(member)
    assert driven.snapshot is not None
    return driven, snapshot.decode(driven.snapshot), member


def test_another_generation_another_state_and_another_member_are_found() -> None:
    driven, group, _ = stable_group()
    first, second = sorted(classic(group).members)
    group.part.generation += 1
    classic(group).members["unknown"] = msgspec.structs.replace(classic(group).members.pop(first), member_id="unknown")
    found = differences(driven.journal, group, read_by(driven))
    assert found[0].startswith(f"generation {group.generation}, in the journal {group.generation - 1}")
    assert f"member {first} is in the journal only" in found
    assert "member unknown is in the state only" in found
    assert not any(second in line for line in found)


def test_another_offset_and_a_lost_one_are_found() -> None:
    driven, group, _ = stable_group()
    topic, partition, committed = next(group.committed_offsets())
    group.offsets[topic][partition] = msgspec.structs.replace(committed, offset=committed.offset + 1)
    (found,) = differences(driven.journal, group, read_by(driven))
    assert found.startswith(f"offset of {topic}-{partition}: {committed.offset + 1} of")
    group.offsets.clear()
    assert differences(driven.journal, group, read_by(driven))[0].startswith(f"offset of {topic}-{partition}: none")


def test_an_offset_of_a_transaction_does_not_replace_a_newer_one() -> None:
    driven = Driven()
    driven.commit_in_transaction({("topic", 0): 5, ("topic", 1): 6})
    driven.commit(offsets={("topic", 0): 7})
    driven.end_transaction(commit=True)
    assert {(partition, each.offset) for _, partition, each in driven.group.committed_offsets()} == {(0, 7), (1, 6)}
    for cut in range(len(driven.journal)):
        assert differences(driven.journal[cut:], driven.group, read_by(driven)) == []


def test_an_offset_that_the_whole_journal_does_not_have_is_found_and_a_cut_one_does_not_know_it() -> None:
    driven, group, _ = stable_group()
    group.offsets["unknown"] = {3: CommittedOffset(5, None, "", 0, None)}
    (found,) = differences(driven.journal, group, read_by(driven))
    assert found.startswith("offset of unknown-3: 5 of")
    assert differences(driven.journal[1:], group, read_by(driven)) == []


def test_a_state_behind_the_requests_that_its_batch_has_read_is_found() -> None:
    driven, group, member = stable_group()
    driven.commit(member)
    (found,) = differences(driven.journal, group, read_by(driven))
    assert found.startswith(f"the state ends at entry {group.sequence}, the journal has entry {group.sequence + 1}")
    assert differences(driven.journal, group, read_by(driven) - 1) == []


def test_a_journal_that_lacks_entries_is_found() -> None:
    driven, group, _ = stable_group()
    last = driven.journal[-1].sequence
    assert differences(driven.journal[:-1], group, read_by(driven)) == [
        f"the state ends at entry {last}, the journal at entry {last - 1}"
    ]
    (found,) = differences([*driven.journal[:2], *driven.journal[4:]], group, read_by(driven))
    assert found == "the journal lacks entries 3 to 4"


def test_a_group_that_the_state_has_lost_is_found_unless_it_was_deleted() -> None:
    driven = Driven()
    driven.commit()
    read_until = read_by(driven)
    assert differences(driven.journal, None, read_until) == [f"missing {driven.group.incarnation}"]
    assert differences(driven.journal, None, 0) == []
    driven.delete()
    assert differences(driven.journal, None, read_by(driven)) == []
    # Deleted after the batch.
    assert len(differences(driven.journal, None, read_until)) == 1
