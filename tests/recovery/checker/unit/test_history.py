"""The file of a run, the forms for other checkers, and the command."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import edn_format
import pytest

from coordinator_logic.errors import Error
from tests.recovery.checker.history import Event, Function, Kind, Position, Recorder, UnreadableHistory, read
from tests.recovery.checker.operations import paired
from tests.recovery.checker.outside import from_edn, register_to_edn, to_edn, to_porcupine
from tests.recovery.checker.unit.simulated_run import simulate
from tests.recovery.checker.unit.simulation import Plan, Protocol
from tests.recovery.checker.unit.told import GROUP, at, commit, fetch, history, refused

ORDERS = ("orders", 0)


# ---- the file --------------------------------------------------------------------------------------------------


def test_a_line_is_in_the_file_before_the_next_event(tmp_path: Path) -> None:
    path = tmp_path / "history"
    with path.open("wb") as file:
        operation = Recorder(file).invoke("client", Function.COMMIT, GROUP, value=at(5))
        assert [event.kind for event in read(path.read_bytes().splitlines(True)).events] == [Kind.INVOKE]
        operation.ok(answer="aa")
        invoked, completed = read(path.read_bytes().splitlines(True)).events
    assert (completed.kind, completed.value, completed.answer) == (Kind.OK, at(5), "aa")
    assert completed.time >= invoked.time


def test_an_operation_is_completed_once_so_that_a_client_s_error_does_not_hide_the_other_rules(tmp_path: Path) -> None:
    path = tmp_path / "history"
    with path.open("wb") as file:
        operation = Recorder(file).invoke("client", Function.COMMIT, GROUP, value=at(5))
        operation.info()
        with pytest.raises(AssertionError, match="completed twice"):
            operation.fail(Error.UNKNOWN_SERVER_ERROR)
    assert [event.kind for event in read(path.read_bytes().splitlines(True)).events] == [Kind.INVOKE, Kind.INFO]


def test_clients_on_many_threads_record_a_well_formed_history(tmp_path: Path) -> None:
    with (tmp_path / "history").open("wb") as file:
        recorder = Recorder(file)

        def work(client: str) -> None:
            for offset in range(50):
                operation = recorder.invoke(client, Function.COMMIT, GROUP, value=at(offset))
                operation.info() if offset % 10 == 0 else operation.ok()

        threads = [threading.Thread(target=work, args=(f"client-{n % 2}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    operations, malformed = paired(read((tmp_path / "history").read_bytes().splitlines(True)).events)
    assert malformed == []
    assert len(operations) == 200


def test_the_last_line_of_a_killed_process_may_be_cut() -> None:
    lines = [line.encode() + b"\n" for line in ('{"line": "journal", "value": "YQ=="}', '{"line": "journal"')]
    assert read([lines[0], lines[1].rstrip()]).journal == [b"a"]
    with pytest.raises(UnreadableHistory, match="line 2"):
        read(lines)


def test_no_event_follows_the_journal() -> None:
    event = b'{"line": "event", "process": 0, "type": "invoke", "f": "join", "time": 0, "wall": 0, "client": "a"}\n'
    assert read([event]).events[0].f is Function.JOIN
    with pytest.raises(UnreadableHistory, match="line 2"):
        read([b'{"line": "journal", "value": "YQ=="}\n', event])


# ---- other checkers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", Protocol)
def test_a_history_survives_edn_unmodified(protocol: Protocol) -> None:
    run = simulate(Plan(3, protocol, clients=2, static_clients=1, length_ms=20_000))
    assert {Kind.INFO, Kind.FAIL} <= {event.kind for event in run.events}
    assert list(from_edn(to_edn(run.events))) == run.events


def test_jepsen_can_pair_the_operations() -> None:
    """As ``jepsen.history`` does: dense indices, integer processes, one operation of a process at a time."""
    busy: set[int] = set()
    lines = to_edn(simulate(Plan(3, clients=2, length_ms=20_000)).events)
    for index, line in enumerate(lines):
        operation = {keyword.name: value for keyword, value in edn_format.loads(line).items()}
        assert operation["index"] == index
        process = operation["process"]
        if operation["type"].name == "invoke":
            assert process not in busy
            busy.add(process)
        elif process != edn_format.Keyword("nemesis"):
            busy.remove(process)


def test_knossos_gets_the_reads_and_writes_of_one_partition() -> None:
    other = Position("orders", 1, 99)
    done = history(commit(5, 0, 10), refused(6, 2, 12), commit(7, 20, 30, Kind.INFO), fetch(5, 40, 50))
    mixed = [*done, Event(9, Kind.INVOKE, Function.COMMIT, 60, 0, "client", GROUP, value=[other])]
    lines = list(register_to_edn(mixed, GROUP, ORDERS))
    assert lines[0] == '{:index 0 :time 0 :type :invoke :process 0 :f :write :value [5 ""]}'
    shown = [(edn_format.loads(line)[edn_format.Keyword("type")].name) for line in lines]
    assert shown == ["invoke", "invoke", "ok", "fail", "invoke", "info", "invoke", "ok"]


def test_porcupine_gets_a_return_for_every_call() -> None:
    done = history(commit(5, 0, 10), refused(6, 2, 12), commit(7, 20, 30, Kind.INFO), fetch(5, 40, 50))
    events = json.loads(to_porcupine(done, GROUP, ORDERS))
    assert events == [
        {"ClientId": 0, "Kind": False, "Value": {"op": "write", "value": [5, ""]}, "Id": 0},
        {"ClientId": 0, "Kind": True, "Value": None, "Id": 0},
        {"ClientId": 2, "Kind": False, "Value": {"op": "write", "value": [7, ""]}, "Id": 2},
        {"ClientId": 3, "Kind": False, "Value": {"op": "read"}, "Id": 3},
        {"ClientId": 3, "Kind": True, "Value": [5, ""], "Id": 3},
        {"ClientId": 2, "Kind": True, "Value": None, "Id": 2},
    ]


# ---- the command -----------------------------------------------------------------------------------------------


def test_the_command_says_what_is_wrong_with_a_file(tmp_path: Path) -> None:
    def checked(offset: int) -> subprocess.CompletedProcess[str]:
        with (tmp_path / "history").open("wb") as file:
            recorder = Recorder(file)
            recorder.invoke("a", Function.COMMIT, GROUP, value=at(5)).ok()
            recorder.invoke("b", Function.FETCH, GROUP, value=at(-1)).ok(value=at(offset))
            recorder.end([], {})
        command = [sys.executable, "-m", "tests.recovery.checker", str(tmp_path / "history")]
        root = Path(__file__).parents[4]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=root)

    good, bad = checked(5), checked(6)
    assert (good.returncode, bad.returncode) == (0, 1), good.stderr
    assert "nobody committed it (lines 3, 4)" in bad.stdout
