"""The command ``group-coordinator gateway``. What it needs beyond a Kafka client is imported when it runs."""

import os
from pathlib import Path
from typing import Annotated

import typer

from streaming.console import REFUSED, USAGE, AsJson, fail, key_values, reporter
from streaming.errors import CannotRun
from streaming.options import BadOptions

FLAGS = (
    *("bootstrap_servers", "listen", "advertised_host", "topic_prefix", "metrics_port"),
    *("tls_cert", "tls_key", "max_connections"),
)
"""Options of the gateway, by the names that :func:`streaming.gateway.options.load_gateway_options` knows."""


def gateway(
    context: typer.Context,
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-servers",
            "-b",
            envvar="GROUP_COORDINATOR_BOOTSTRAP_SERVERS",
            help="The real Kafka brokers, `host:port[,host:port...]`.",
        ),
    ] = None,
    listen: Annotated[
        str | None, typer.Option(help="`HOST:PORT` where clients connect; 127.0.0.1:19092 by default.")
    ] = None,
    advertised_host: Annotated[str | None, typer.Option(help="The host that clients are told.")] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file with any of the options.")] = None,
    topic_prefix: Annotated[
        str | None,
        typer.Option(envvar="GROUP_COORDINATOR_TOPIC_PREFIX", help="What the coordinator's topics begin with."),
    ] = None,
    metrics_port: Annotated[
        int | None, typer.Option(help="Port of the Prometheus metrics; 0 takes a free one.")
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="PEM file: clients connect with TLS.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="PEM file of the certificate's key.")] = None,
    max_connections: Annotated[int | None, typer.Option(help="Connections of clients at one time.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any option, e.g. `kafka.ssl.ca.location=ca.pem`. Repeatable."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Let unmodified Kafka clients use the coordinator: they connect here instead of to Kafka.

    Each broker of the real cluster is shown at a port of its own, from the one of `--listen` on. Everything that is
    not about groups goes to the real brokers. Ctrl-C or SIGTERM ends it when the requests in flight are answered.

    Every option can also be an environment variable, `GROUP_COORDINATOR_GATEWAY_LISTEN` for `--listen`, or a key of
    the TOML file. `--set kafka.KEY=VALUE` goes to the gateway's own Kafka clients (librdkafka's properties). Where
    they say that the brokers want SASL, clients of the gateway authenticate with the broker, through the gateway.

    Example: `group-coordinator gateway -b localhost:9092 --listen localhost:19092`
    """
    flags = {name: context.params[name] for name in FLAGS} | key_values(settings, "--set")
    try:
        from streaming.gateway.options import load_gateway_options
        from streaming.gateway.run import run_gateway
    except ModuleNotFoundError as missing:
        fail(f"{missing.name} is not installed: install the extra `gateway`", REFUSED)
    try:
        run_gateway(load_gateway_options(flags, os.environ, config), reporter(as_json))
    except BadOptions as error:
        fail(str(error), USAGE)
    except CannotRun as error:
        fail(str(error), REFUSED)
