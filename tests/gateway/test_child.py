"""The gateway as a child process: its options, passwords among them, are in no file and on no command line."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import tomli_w

from streaming.contract.errors import CannotRun
from streaming.embedded.broker import EmbeddedBroker
from streaming.gateway.child import CONFIGURATION, running_gateway
from tests.support.processes import command_line, descendants

PASSWORD = 'p\U0001f600ß"\\\x7f\n$'
"""With a character beyond U+FFFF, for which JSON has two escapes and TOML none."""

READ_CONFIGURATION = """
import sys
from pathlib import Path
from streaming.gateway.options import load_gateway_options
print(ascii(load_gateway_options({}, {}, Path(sys.argv[1])).kafka["sasl.password"]))
"""


@pytest.mark.parametrize("locale", ["C.UTF-8", "C", "POSIX"])
def test_any_password_reaches_the_gateway_in_any_locale(locale: str) -> None:
    options = {"bootstrap-servers": "kafka:9092", "kafka.sasl.password": PASSWORD}
    command = [sys.executable, "-X", "utf8=0", "-c", READ_CONFIGURATION, CONFIGURATION]
    environment = {**os.environ, "LC_ALL": locale, "PYTHONCOERCECLOCALE": "0"}
    written = tomli_w.dumps(options).encode()
    found = subprocess.run(command, input=written, capture_output=True, env=environment, check=True, timeout=60)
    assert found.stdout.decode().strip() == ascii(PASSWORD)


def test_what_the_gateway_says_of_its_options_is_the_reason_that_it_did_not_start() -> None:
    # As of a variable whose bytes are not UTF-8.
    options = {"bootstrap-servers": "kafka:9092", "kafka.sasl.password": "p\udcff"}
    with pytest.raises(CannotRun, match=r"did not start: .*/dev/stdin is not TOML"), running_gateway(options, print):
        pass


def test_while_it_runs_no_file_and_no_command_line_has_the_password(
    broker: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    options = {
        "bootstrap-servers": broker.bootstrap_servers,
        "listen": "127.0.0.1:0",
        "kafka.sasl.password": PASSWORD,
    }
    with running_gateway(options, print):
        gateways = [pid for pid in descendants(os.getpid()) if b"gateway" in command_line(pid)]
        assert gateways
        for pid in gateways:
            assert not any(PASSWORD.encode() in word for word in command_line(pid))
        assert list(tmp_path.rglob("*")) == []
