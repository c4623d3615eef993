"""``group-coordinator gateway``: Kafka's wire protocol in front of the coordinator's topics."""

import os
from pathlib import Path
from typing import Annotated

import typer

from streaming.cli.boundary import errors_as_lines
from streaming.cli.connection import BOOTSTRAP_VARIABLE, PREFIX_OPTION
from streaming.cli.console import (
    METRICS_HELP,
    AnyOption,
    ConfigurationFile,
    JsonLines,
    brokers_option,
    key_values,
    reporter,
    require,
)
from streaming.cli.help_output import option
from streaming.cli.usage import taking
from streaming.contract.option_values import ListenAddress

CLIENTS_PANEL = "Clients of the gateway"

LISTEN_HELP = "Address of the first listener. Each broker gets a listener of its own, from this port upwards."
ADVERTISED_HELP = "Host that the gateway advertises to clients."
CERTIFICATE_HELP = "PEM file of the listeners' certificate: turns on TLS."
KEY_HELP = "PEM file of the certificate's key."

BrokersBehind = Annotated[str | None, brokers_option("Kafka brokers behind the gateway.", BOOTSTRAP_VARIABLE)]
TopicPrefix = Annotated[str | None, PREFIX_OPTION]
Listen = Annotated[
    str | None,
    option(
        metavar="HOST:PORT",
        text=LISTEN_HELP,
        panel=CLIENTS_PANEL,
        default="127.0.0.1:19092",
        callback=taking(ListenAddress),
    ),
]
AdvertisedHost = Annotated[
    str | None, option(metavar="HOST", text=ADVERTISED_HELP, panel=CLIENTS_PANEL, default="the host of --listen")
]
Certificate = Annotated[Path | None, option(metavar="FILE", text=CERTIFICATE_HELP, panel=CLIENTS_PANEL)]
Key = Annotated[Path | None, option(metavar="FILE", text=KEY_HELP, panel=CLIENTS_PANEL, default="in --tls-cert")]
MaxConnections = Annotated[
    int | None, option(metavar="COUNT", text="Client connections at a time.", panel=CLIENTS_PANEL, default=10_000)
]
MetricsPort = Annotated[int | None, option(metavar="PORT", text=METRICS_HELP)]

FLAGS = (
    *("bootstrap_servers", "listen", "advertised_host", "topic_prefix", "metrics_port"),
    *("tls_cert", "tls_key", "max_connections"),
)
"""Parameters of :func:`gateway` that are its options, by the names that ``load_gateway_options`` knows."""


def gateway(
    context: typer.Context,
    bootstrap_servers: BrokersBehind = None,
    topic_prefix: TopicPrefix = None,
    listen: Listen = None,
    advertised_host: AdvertisedHost = None,
    tls_cert: Certificate = None,
    tls_key: Key = None,
    max_connections: MaxConnections = None,
    metrics_port: MetricsPort = None,
    config: ConfigurationFile = None,
    settings: AnyOption = None,
    as_json: JsonLines = False,
) -> None:
    """Let unmodified Kafka clients use the coordinator: they connect to the gateway instead of to Kafka.

    The gateway sends requests about groups to the coordinator and passes all others to the brokers. On Ctrl-C or
    SIGTERM it answers the requests in flight and ends. Where the brokers require SASL, clients authenticate with the
    broker, through the gateway.

    Each option is also an environment variable (GROUP_COORDINATOR_GATEWAY_LISTEN for --listen) and a key of the
    TOML file (listen). A flag overrides the variable, and the variable overrides the file.

    Options without a flag are given with --set:
      --set kafka.KEY=VALUE    the gateway's Kafka clients (librdkafka)
    """
    require("gateway", "gateway")
    from streaming.gateway.options import load_gateway_options
    from streaming.gateway.service import run_gateway

    flags = {name: context.params[name] for name in FLAGS} | key_values(settings, "--set")
    with errors_as_lines():
        options = load_gateway_options(flags, os.environ, config)
        options.require_free_ports()
        run_gateway(options, reporter(as_json))
