"""Each line for ``group-coordinator`` in README and the guide runs as it stands, with this test's brokers and folders.

The lines of console sessions are played by ``test_pages``.
"""

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from typer.testing import CliRunner

from streaming.cli.app import app
from streaming.cli.connection import BOOTSTRAP_VARIABLE
from streaming.client import Consumer
from streaming.embedded.interruption import INTERRUPTED
from streaming.embedded.ports import free_address
from tests.docs.console.lines import ELSEWHERE, IN_A_PROCESS, SERVICES, lines_to_run, text_for, words_of
from tests.docs.console.playing import Player
from tests.docs.console.sessions import CONTROL_C, Block, Typed
from tests.docs.markdown import ROOT, name_of
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.kafka_io import produce_all
from tests.support.topics import create_topic, unique
from tests.support.waiting import LIMIT_SECONDS, wait_until

GROUP, TOPIC, PARTITIONS = "billing", "orders", 6
"""Those of the documents."""

LINES = [(document, line) for document, line in lines_to_run() if text_for(line, ELSEWHERE) is None]

pytestmark = [pytest.mark.jvm, pytest.mark.timeout(600)]


class Place:
    """Where the lines run: a folder, and what is there in place of the documents' addresses, folders and times."""

    def __init__(self, folder: Path, coordinator: CoordinatorProcess) -> None:
        self.folder = folder
        self.coordinator = coordinator
        self.replaced = {
            "kafka-1:9092": coordinator.bootstrap_servers,
            "gateway-1:19092": free_address(),
            "/var/lib/coordinator": str(coordinator.checkpoint),
            "/backups/coordinator": str(folder / "backups"),
        }

    def here(self, line: str) -> str:
        """A line as it is here."""
        line = re.sub(r"2026-11-2\dT\d\d:\d\d:\d\dZ", datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), line)
        for documented, here in self.replaced.items():
            line = line.replace(documented, here)
        return line

    @contextmanager
    def player(self, **environment: str) -> Iterator[Player]:
        """Terminals in the folder. environment: variables in place of those of the shared coordinator."""
        with Player(self.folder / uuid.uuid4().hex, {}, {**self.variables, **environment}) as player:
            yield player

    @property
    def variables(self) -> dict[str, str]:
        """What the documents leave out: the shared coordinator has topics of its own."""
        return {
            BOOTSTRAP_VARIABLE: self.coordinator.bootstrap_servers,
            "GROUP_COORDINATOR_TOPIC_PREFIX": self.coordinator.topics.prefix,
        }


@pytest.fixture(scope="module")
def coordinator(young_coordinator: CoordinatorProcess) -> CoordinatorProcess:
    """In place of the one that most tests share."""
    return young_coordinator


@pytest.fixture(scope="module")
def place(coordinator: CoordinatorProcess, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A place with the documents' group, whose member has read and left, and the file that they import."""
    found = Place(tmp_path_factory.mktemp("lines"), coordinator)
    servers = coordinator.bootstrap_servers
    if TOPIC not in AdminClient({"bootstrap.servers": servers}).list_topics(timeout=LIMIT_SECONDS).topics:
        create_topic(servers, TOPIC, PARTITIONS)
    produce_all(servers, TOPIC, [b"order"])
    prefix = coordinator.topics.prefix
    consumer = Consumer(servers, group_id=GROUP, topic_prefix=prefix, auto_offset_reset="earliest")
    with consumer:
        consumer.subscribe([TOPIC])
        wait_until(lambda: consumer.poll(0.1), "a record of the topic")
    (found.folder / "billing.csv").write_text(f"{TOPIC},0,1\n")
    return found


@pytest.mark.parametrize(
    "line", [line for _, line in LINES], ids=[f"{name_of(document)}: {line}" for document, line in LINES]
)
def test_a_line_runs_as_it_stands(line: str, place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if (first := text_for(line, SERVICES)) is not None:
        run_service(line, first, place, tmp_path)
    elif line.startswith(IN_A_PROCESS):
        with place.player() as player:
            player.play(Block([], [Typed("", f"group-coordinator {place.here(line)}")]))
    else:
        monkeypatch.chdir(place.folder)
        done = CliRunner().invoke(app, words_of(place.here(line)), env=place.variables)
        assert done.exit_code == 0, done.output


def run_service(line: str, first: str, place: Place, folder: Path) -> None:
    """Run a line until its command prints a text, and end it with Ctrl-C."""
    environment = {"GROUP_COORDINATOR_GATEWAY_LISTEN": free_address()}
    if line.startswith("run "):
        # The shared coordinator is active for its topics and its checkpoint.
        environment["GROUP_COORDINATOR_TOPIC_PREFIX"] = unique("lines")
        line = line.replace("/var/lib/coordinator", str(folder / "coordinator"))
    with place.player(**environment) as player:
        player.play(Block([("until", first)], [Typed("service", f"group-coordinator {place.here(line)}")]))
        player.play(Block([("ends with", str(INTERRUPTED))], [Typed("service", CONTROL_C)]))


def test_the_example_of_the_python_client_reads_records(place: Place) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    address = '"127.0.0.1:9092"'
    assert address in example
    coordinator = place.coordinator
    here = f'"{coordinator.bootstrap_servers}", topic_prefix="{coordinator.topics.prefix}"'
    produce_all(coordinator.bootstrap_servers, TOPIC, [b"next"])
    program = place.folder / "example.py"
    program.write_text(example.replace(address, here))
    with place.player() as player:
        player.play(Block([("until", "b'next'")], [Typed("service", f"python {program}")]))
