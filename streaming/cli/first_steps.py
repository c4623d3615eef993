"""What ``run`` says when it is ready: where Kafka clients connect, and a first command to try."""

import shlex
from collections.abc import Callable

GATEWAY_READY = "gateway: ready: clients connect to "


class FirstSteps:
    """Reports the lines of a job and of its gateway, and further ones when the job is ready.

    bootstrap_servers, topic_prefix: those of the job, for commands.
    """

    def __init__(self, report: Callable[[str], None], bootstrap_servers: str, topic_prefix: str) -> None:
        self._report = report
        self._command = ["group-coordinator", "groups", "list", "-b", bootstrap_servers]
        if topic_prefix:
            self._command += ["--topic-prefix", topic_prefix]
        self._gateway: str | None = None
        self._has_shown = False

    def report(self, line: str) -> None:
        """Report a line; from any thread."""
        self._report(line)
        if line.startswith(GATEWAY_READY):
            self._gateway = line.removeprefix(GATEWAY_READY).partition(";")[0]
        # The job may stand by at first, and be ready again after an outage.
        if not line.startswith("ready") or self._has_shown:
            return
        self._has_shown = True
        if self._gateway is not None:
            self._report(
                f"Kafka clients connect to {self._gateway}, for example: kafka-console-consumer.sh "
                f"--bootstrap-server {self._gateway} --topic TOPIC --group GROUP"
            )
        self._report(f"to list the groups: {shlex.join(self._command)}")
