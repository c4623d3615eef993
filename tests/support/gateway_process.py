"""``group-coordinator gateway`` as a process of its own."""

import sys
from collections.abc import Mapping

from streaming.embedded.ports import free_address
from tests.support.coordinator_process import reports_ready
from tests.support.processes import Process


class GatewayProcess(Process):
    """A gateway at an address that stays the same through every start: ``bootstrap_servers``.

    bootstrap_servers: the brokers. settings: options of the gateway by their keys. module: started in place of the
    command line, with the same arguments. environment: adds to the variables of this process.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        topic_prefix: str,
        settings: Mapping[str, str] | None = None,
        *,
        name: str = "gateway",
        module: str = "streaming.cli",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.bootstrap_servers = free_address()
        command = [sys.executable, "-m", module, "gateway", "--json", "--listen", self.bootstrap_servers]
        command += ["--bootstrap-servers", bootstrap_servers, "--topic-prefix", topic_prefix]
        for key, value in (settings or {}).items():
            command += ["--set", f"{key}={value}"]
        super().__init__(name, command, environment=environment)

    @property
    def port(self) -> int:
        """The port at which clients connect."""
        return int(self.bootstrap_servers.rpartition(":")[2])

    def start(self) -> None:
        """Start it, and return when clients may connect."""
        super().start()
        self.await_line("that it is ready", reports_ready)
