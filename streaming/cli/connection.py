"""The options with which a command connects to the coordinator, and the errors of that connection.

Commands use :func:`connected`: it gives a command these options in place of its parameter ``connection``.
"""

import getpass
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any

from streaming.cli.console import KAFKA_PANEL, OUTPUT_PANEL, REFUSED, USAGE, brokers_option, err, fail, key_values
from streaming.cli.gateway_address import is_gateway
from streaming.cli.help_output import flag, option
from streaming.cli.usage import signing_key_file, taking
from streaming.client import CoordinatorClient, CoordinatorError, CoordinatorNotAvailable, RequestTimedOut
from streaming.client.errors import NotAuthorized, TopicNotFound
from streaming.contract import option_values
from streaming.contract.identity import read_principal_key
from streaming.contract.topics import TopicNames
from streaming.contract.waits import announcing_waits
from streaming.explain.error_sentences import sentence_of_failure

BOOTSTRAP_VARIABLE = "GROUP_COORDINATOR_BOOTSTRAP_SERVERS"
PREFIX_VARIABLE = "GROUP_COORDINATOR_TOPIC_PREFIX"
SIGNING_KEY_VARIABLE = "GROUP_COORDINATOR_SIGNING_KEY"

CLIENT_ID = "group-coordinator-cli"

LOG_NOTHING = 0
"""librdkafka's ``log_level`` that is below errors."""

ENVIRONMENT_HELP = f"""\
[bold]Environment[/bold]
{BOOTSTRAP_VARIABLE}  instead of -b
{PREFIX_VARIABLE}       instead of --topic-prefix
{SIGNING_KEY_VARIABLE}        instead of --signing-key"""
"""What ``--help`` says about environment variables, which the table of options would truncate."""

BootstrapServers = Annotated[str, brokers_option(variable=BOOTSTRAP_VARIABLE)]
PREFIX_OPTION = option(
    metavar="PREFIX",
    text="Prefix of the coordinator's topic names.",
    panel=KAFKA_PANEL,
    envvar=PREFIX_VARIABLE,
    callback=taking(option_values.TopicPrefix),
)
TopicPrefix = Annotated[str, PREFIX_OPTION]
Timeout = Annotated[int, option(metavar="SECONDS", text="How long to wait for an answer.", panel=KAFKA_PANEL, min=1)]
ClientProperties = Annotated[
    list[str] | None,
    option(
        "--property",
        "-X",
        metavar="KEY=VALUE",
        text="Property of the Kafka client (librdkafka's name), for example security.protocol=SSL. Repeatable.",
        panel=KAFKA_PANEL,
        callback=taking(option_values.KeyAndValue),
    ),
]
SigningKey = Annotated[
    str | None,
    option(
        metavar="FILE",
        text="File with a principal and its key, which signs requests.",
        panel=KAFKA_PANEL,
        envvar=SIGNING_KEY_VARIABLE,
        callback=signing_key_file,
    ),
]
AsJson = Annotated[bool, flag("--json", "Print JSON instead of a table.", OUTPUT_PANEL)]


@dataclass(frozen=True, kw_only=True)
class Connection:
    """How a command reaches the coordinator and prints its answers."""

    bootstrap_servers: BootstrapServers
    topic_prefix: TopicPrefix = ""
    timeout: Timeout = 10
    properties: ClientProperties = None
    signing_key: SigningKey = None
    as_json: AsJson = False

    @property
    def config(self) -> dict[str, str | int | float | bool]:
        """The user's configuration of Kafka's clients, under librdkafka's keys."""
        # The error that ends the command is enough; librdkafka would log each attempt to connect.
        return {"log_level": LOG_NOTHING, **key_values(self.properties, "--property")}

    @property
    def reader_config(self) -> dict[str, str | int | float | bool]:
        """The same, with the brokers."""
        return {**self.config, "bootstrap.servers": self.bootstrap_servers}

    @property
    def topics(self) -> TopicNames:
        """The names of the coordinator's topics."""
        return TopicNames(self.topic_prefix)

    @contextmanager
    def client(self) -> Iterator[CoordinatorClient]:
        """A client of the coordinator; its errors end the command with one line and an exit code.

        What the command waits for longer than a second is said on standard error.
        """
        with self.errors_as_lines(), self._connected() as client:
            yield client

    @contextmanager
    def live_client(self) -> Iterator[CoordinatorClient]:
        """The same for a screen or a server: once it is connected, they show themselves who does not answer."""
        with self._refusals_as_lines():
            with announcing_waits(err.line, self.bootstrap_servers):
                connected = self._connected()
            with connected as client:
                yield client

    def _connected(self) -> CoordinatorClient:
        return CoordinatorClient(
            self.bootstrap_servers,
            topic_prefix=self.topic_prefix,
            client_id=CLIENT_ID,
            principal=_principal(self.config),
            principal_key=None if self.signing_key is None else read_principal_key(self.signing_key),
            request_timeout_ms=self.timeout * 1000,
            config=self.config,
        )

    @contextmanager
    def errors_as_lines(self) -> Iterator[None]:
        """End the command with one line and an exit code on an error of the coordinator or the brokers.

        What the command waits for longer than a second is said on standard error.
        """
        with self._refusals_as_lines(), announcing_waits(err.line, self.bootstrap_servers):
            yield

    @contextmanager
    def _refusals_as_lines(self) -> Iterator[None]:
        try:
            yield
        except RequestTimedOut as error:
            fail(f"{error.message} (is `group-coordinator run` running?)", REFUSED)
        except CoordinatorNotAvailable as error:
            if isinstance(error, TopicNotFound | NotAuthorized) and is_gateway(self.reader_config, self.topics):
                fail(f"{self.bootstrap_servers} is a gateway: give a broker's address", USAGE)
            fail(sentence_of_failure(error), REFUSED)
        except CoordinatorError as error:
            fail(sentence_of_failure(error), REFUSED)


def _principal(config: Mapping[str, object]) -> str | None:
    """Who runs the command, for the journal: the user of the connection, or else of this machine."""
    user = config.get("sasl.username")
    if user is None:
        # A container may run as a user that has no name.
        with suppress(KeyError, OSError):
            user = getpass.getuser()
    return None if user is None else f"User:{user}"


def with_options(name: str, options: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator that gives a command the fields of a dataclass as options, in place of the parameter ``name``."""
    fields = list(inspect.signature(options).parameters.values())

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = [each for each in inspect.signature(command).parameters.values() if each.name != name]

        @wraps(command)
        def with_fields(**arguments: Any) -> None:
            value = options(**{field.name: arguments.pop(field.name) for field in fields})
            command(**{name: value}, **arguments)

        parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*own, *fields)]
        with_fields.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        with_fields.__annotations__ = {each.name: each.annotation for each in parameters}
        return with_fields

    return decorate


connected = with_options("connection", Connection)
"""Gives a command the options of :class:`Connection` in place of its parameter ``connection``."""
