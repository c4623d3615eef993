"""A coordinator of the drills' own: a broker, jobs as processes, a gateway, and the commands that an operator types."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

from streaming.contract.errors import BadOptions
from streaming.contract.output.plain import line_writer
from streaming.drills.recording import StepKind
from streaming.drills.waiting import DrillFailed, await_until
from streaming.embedded.broker import EmbeddedBroker
from streaming.embedded.broker_watch import ending_with_broker
from streaming.embedded.child_process import ChildProcess
from streaming.embedded.job_process import PROGRAM, JobProcess
from streaming.embedded.ports import free_address
from streaming.embedded.temporary_folder import clear_leftovers, temporary_folder
from streaming.gateway.child import running_gateway
from streaming.job.checkpoints.lock import is_locked
from streaming.job.options import load_options

COMMAND_LIMIT_SECONDS = 300.0
JVM_END_LIMIT_SECONDS = 60.0
LOG_LINES = 15

SETTINGS = {"group.initial.rebalance.delay.ms": "500"}
"""Options of the jobs, which the user's override: with Kafka's 3 s, the drills' groups form later."""

OWN_OPTIONS = ("bootstrap-servers", "checkpoint", "topic-prefix")
"""Options that the drills choose: with the user's, clients and commands would use another coordinator than the jobs."""

Say = Callable[[StepKind, str], object]
"""Called with the kind of a step and its text."""


def check_settings(settings: Sequence[str]) -> None:
    """Check options of the jobs, as ``KEY=VALUE``. Raises BadOptions for a wrong one, and for :data:`OWN_OPTIONS`."""
    pairs = [setting.partition("=") for setting in settings]
    for name, _, _ in pairs:
        key = name.replace("_", "-")
        if key in OWN_OPTIONS:
            raise BadOptions(f"--set {key}: a drill chooses this option of its jobs itself")
    own = {"bootstrap-servers": "127.0.0.1:0", "checkpoint": "drill"}
    load_options({key: value for key, _, value in pairs}, {}, defaults=own)


@contextmanager
def own_folder() -> Iterator[Path]:
    """A new folder for :class:`OwnCoordinator`, which is removed afterwards."""
    with temporary_folder() as temporary:
        yield temporary.path


class OwnCoordinator:
    """The processes, from the start of a ``with`` block to its end.

    folder: for checkpoint, broker data, backups and logs. settings: options of the jobs, as ``KEY=VALUE``.
    say: see :data:`Say`. stored_at: where the jobs keep their checkpoint if not in ``folder``: in an object store.
    """

    def __init__(self, folder: Path, settings: Sequence[str], say: Say, stored_at: str | None = None) -> None:
        self.checkpoint = folder / "checkpoint"
        self._location = stored_at or str(self.checkpoint)
        self.backups = folder / "backups"
        self.broker = EmbeddedBroker(data_dir=folder / "kafka")
        self.gateway = free_address()
        self.environment: dict[str, str] = {}
        """Adds to the variables of jobs that are made from now on."""
        self.folder = folder
        chosen = [*(f"{key}={value}" for key, value in SETTINGS.items()), *settings]
        self.set_words = [word for setting in chosen for word in ("--set", setting)]
        """The jobs' options on the command line, for commands that have to fit them."""
        self._say = say
        self._stack = ExitStack()
        self.job: JobProcess
        """The job that is active, or was the last one."""
        self.standby: JobProcess
        """The job that stands by, or is about to."""
        self._jobs = 0

    def __enter__(self) -> Self:
        with ExitStack() as on_failure:
            on_failure.callback(self.__exit__)
            self._say("step", "a broker, a job and a gateway are started")
            self._stack.enter_context(self.broker)
            self._stack.enter_context(ending_with_broker(self.broker, keeps_log=False))
            self._say("step", "the broker is ready")
            self.start_job().await_ready()
            self._say("step", "the job is ready")
            log = self._stack.enter_context((self.folder / "gateway.log").open("w"))
            options = {"bootstrap-servers": self.bootstrap_servers, "listen": self.gateway}
            self._stack.enter_context(running_gateway(options, line_writer(log)))
            self._say("step", f"the gateway listens at {self.gateway}")
            on_failure.pop_all()
        return self

    def __exit__(self, *_exception: object) -> None:
        try:
            # Its JVM ends with it, and then no longer writes into the folder.
            if self._jobs and self.job.is_running:
                self.job.terminate()
        finally:
            self._stack.close()
            # Of jobs that were killed: the JVM of one may outlive the next job's start.
            clear_leftovers()

    @property
    def bootstrap_servers(self) -> str:
        """The broker's address."""
        return self.broker.bootstrap_servers

    # ---- jobs ---------------------------------------------------------------------------------------------------

    def start_job(self) -> JobProcess:
        """Start a job in place of the former one, and return at once."""
        self.job = self._new_job(())
        self.job.start()
        return self.job

    def start_standby(self) -> JobProcess:
        """Start a job that is to stand by, and return at once."""
        self.standby = self._new_job(("--standby",))
        self.standby.start()
        return self.standby

    def switch_to_standby(self) -> None:
        """Note that the job that stands by is to be the active one from now on."""
        self.job = self.standby

    def await_end_of_jvm(self) -> None:
        """Wait until the JVM of a killed job has ended: it may finish a batch. Raises DrillFailed."""
        await_until(
            lambda: not is_locked(self.checkpoint),
            lambda: f"the end of the killed job's JVM, which uses {self.checkpoint}",
            JVM_END_LIMIT_SECONDS,
        )

    def _new_job(self, more: Sequence[str]) -> JobProcess:
        self._jobs += 1
        name = f"job-{self._jobs}"
        arguments = [*more, *self.set_words]
        job = JobProcess(
            name,
            self.bootstrap_servers,
            self._location,
            self.folder / f"{name}.log",
            arguments=arguments,
            environment=self.environment,
        )
        self._stack.push(job)
        return job

    # ---- commands -----------------------------------------------------------------------------------------------

    def command(self, *words: str) -> list[str]:
        """Run ``group-coordinator`` with these words, as an operator would; returns its lines. Raises DrillFailed."""
        self._say("command", f"group-coordinator {' '.join(words)}")
        lines: list[str] = []
        log = self.folder / "commands.log"
        process = ChildProcess(words[0], [*PROGRAM, *words], log, lines.append)
        with process:
            exit_code = process.wait(COMMAND_LIMIT_SECONDS)
        if exit_code != 0:
            how = "did not end" if exit_code is None else f"ended with exit code {exit_code}"
            end = "\n".join(lines[-LOG_LINES:])
            raise DrillFailed(f"group-coordinator {' '.join(words)} {how}:\n{end}")
        return lines
