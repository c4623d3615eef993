"""What a command waits for is said on standard error, and standard output stays empty until there is something."""

import pytest
from typer.testing import CliRunner

from streaming.cli.app import app
from streaming.contract.waits import COORDINATOR, announcing_waits, begin_wait, waiting_for
from streaming.embedded.ports import free_address
from tests.support.waiting import wait_until


@pytest.mark.parametrize(
    "words", [["groups", "list"], ["groups", "list", "--json"], ["events"], ["explain", "billing"]]
)
def test_a_command_says_that_it_waits_for_kafka_before_it_gives_up(words: list[str]) -> None:
    nowhere = free_address()
    refused = CliRunner().invoke(app, [*words, "-b", nowhere, "--timeout", "3"])
    waits, *failure = refused.stderr.splitlines()
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert waits == f"waiting for Kafka at {nowhere}, 3 s"
    assert failure


def test_a_wait_is_said_once_while_many_requests_wait_and_not_after_its_end() -> None:
    lines: list[str] = []
    with announcing_waits(lines.append, "kafka:9092"):
        ends = [begin_wait(COORDINATOR, 10) for _ in range(100)]
        wait_until(lambda: len(lines) > 0, "the wait is said")
        for end in ends:
            end()
        with waiting_for("Kafka", 5):
            pass
    assert lines == ["waiting for an answer of the coordinator, 10 s"]


def test_nothing_is_said_where_nobody_listens() -> None:
    with waiting_for(COORDINATOR, 1):
        assert begin_wait(COORDINATOR, 1)() is None
