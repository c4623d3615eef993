"""A port that is in use: each command that listens says so before anything starts, with the option that helps."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.cli.exit_codes import REFUSED
from tests.cli.every_command.test_mistakes import LEAVES, assert_one_line, tried
from tests.cli.test_commands import UNREACHABLE

RUN = ["run", "-b", UNREACHABLE, "--checkpoint", "checkpoint"]
GATEWAY = ["gateway", "-b", UNREACHABLE]

LISTENING = [
    (["broker"], "--port"),
    (["ui", "-b", UNREACHABLE], "--port"),
    (["run", "--embedded", "--checkpoint", "checkpoint"], "--embedded-port"),
    (RUN, "--metrics-port"),
    ([*RUN, "--gateway"], "--gateway-listen"),
    (GATEWAY, "--listen"),
    ([*GATEWAY, "--listen", "127.0.0.1:0"], "--metrics-port"),
]
"""Commands that listen at a port, with the option that chooses it."""


@pytest.fixture
def port() -> Iterator[int]:
    """A port of this machine at which another program listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize(("command", "option"), LISTENING, ids=lambda value: " ".join(value) if value else "")
def test_a_port_in_use_is_one_line_with_the_option_that_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, port: int, command: list[str], option: str
) -> None:
    monkeypatch.chdir(tmp_path)
    value = f"127.0.0.1:{port}" if option.endswith("listen") else str(port)
    result = tried(*command, option, value)
    assert_one_line(result, REFUSED)
    assert result.stderr == f"error: port {port} is in use: choose another with {option}\n"
    assert result.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_every_option_for_a_port_is_tried() -> None:
    listening = {
        (words[0], option.opts[0])
        for words, command in LEAVES.items()
        for option in command.params
        if option.opts[0].endswith(("port", "listen"))
    }
    assert listening == {(command[0], option) for command, option in LISTENING}
