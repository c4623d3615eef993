"""A described group of each type, all of whose texts are a client's, as a command and as top print it."""

import pytest
import typer

from coordinator_logic.embedded_protocols import Assignment, TopicPartition, encode_assignment
from coordinator_logic.messages import (
    DescribedAssignment,
    DescribedConsumer,
    DescribedConsumerGroup,
    DescribedGroup,
    DescribedMember,
)
from coordinator_logic.messages.consumer_groups import DescribedTopicPartitions
from streaming.cli.commands.groups import exit_on_errors, print_group
from streaming.client.group_types import AnyDescribedGroup
from streaming.contract.output.text import printable
from streaming.explain.live.group import description, group_now
from streaming.explain.live.group_types import Holder
from streaming.explain.live.partitions import PartitionNow
from streaming.explain.offsets.plan import Position
from tests.contract.output.hostile_texts import HOSTILE, unprintable

ASSIGNMENT = encode_assignment(Assignment([TopicPartition(HOSTILE, 0)]))
CLASSIC = DescribedGroup(
    HOSTILE,
    group_state=HOSTILE,
    protocol_type="consumer",
    protocol_data=HOSTILE,
    members=[DescribedMember(HOSTILE, HOSTILE, HOSTILE, HOSTILE, b"", ASSIGNMENT)],
)


def consumer(member_id: str, has: list[int], target: list[int]) -> DescribedConsumer:
    held, wanted = (DescribedAssignment([DescribedTopicPartitions("", HOSTILE, places)]) for places in (has, target))
    return DescribedConsumer(member_id, HOSTILE, HOSTILE, 1, HOSTILE, HOSTILE, [HOSTILE], HOSTILE, held, wanted)


CONSUMERS = DescribedConsumerGroup(
    HOSTILE,
    group_state=HOSTILE,
    assignor_name=HOSTILE,
    members=[consumer(HOSTILE, [0, 1], [0]), consumer(f"{HOSTILE} 2", [], [1])],
)


@pytest.mark.parametrize("group", [CLASSIC, CONSUMERS], ids=["classic", "consumer"])
def test_a_group_is_shown_in_lines_that_no_text_breaks(
    group: AnyDescribedGroup, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "4000")
    print_group(group)
    printed = capsys.readouterr().out
    assert printed.startswith(printable(HOSTILE))
    assert unprintable(printed) == []
    place = TopicPartition(HOSTILE, 0)
    shown = description(
        group_now(group), [PartitionNow(place, Position(5), 9, Holder(place, HOSTILE, HOSTILE, HOSTILE), HOSTILE)]
    )
    assert unprintable(shown) == []
    assert shown.split("\n")[0].startswith(printable(HOSTILE))


def test_errors_of_groups_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        exit_on_errors({HOSTILE: 69, f"{HOSTILE} 2": 68})
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    assert unprintable(printed) == []
