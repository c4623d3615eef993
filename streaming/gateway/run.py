"""Runs a gateway until it is told to stop."""

import asyncio
import resource
from collections.abc import Callable

from streaming.gateway.addresses import coordinator_node
from streaming.gateway.cluster import CLIENT_ID, Cluster
from streaming.gateway.groups import serving_groups
from streaming.gateway.metrics import GatewayMetrics
from streaming.gateway.options import GatewayOptions
from streaming.gateway.request import ServedApi
from streaming.gateway.server import GatewayServer
from streaming.gateway.transactions.serving import serving_transactions
from streaming.signals import STOP_SIGNALS
from streaming.topics import TopicNames

__all__ = ["run_gateway"]

OTHER_FILES = 200


def run_gateway(options: GatewayOptions, report: Callable[[str], None]) -> None:
    """Serve until SIGTERM or Ctrl-C; what is in flight is answered first, within the limit.

    ``report`` is given a line for everything that its user should know; the one that begins with ``ready`` comes when
    clients may connect. Main thread only. Raises :class:`streaming.errors.CannotRun`.
    """
    _allow_connections(options.limits.max_connections)
    asyncio.run(_serve(options, report))


def _allow_connections(count: int) -> None:
    """Ask the system for enough open files: every client's connection may have one to a broker."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * count + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


async def _serve(options: GatewayOptions, report: Callable[[str], None]) -> None:
    stop = asyncio.Event()
    for number in STOP_SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    metrics = GatewayMetrics()
    if options.metrics_port is not None:
        report(f"metrics at port {metrics.serve(options.metrics_port)}")
    served: dict[int, ServedApi] = {}
    cluster = Cluster(options, served)

    def is_coordinator(group_id: str, node_id: int) -> bool:
        return coordinator_node(group_id, cluster.node_ids()) == node_id

    topics = TopicNames(options.topic_prefix)
    async with (
        serving_groups(options.bootstrap_servers, topics, CLIENT_ID, options.kafka, is_coordinator) as groups,
        serving_transactions(options, groups, cluster) as transactions,
    ):
        served.update({**groups.apis, **transactions})
        await _until(stop, GatewayServer(options, cluster, served, metrics), report)
    report("stopped")


async def _until(stop: asyncio.Event, server: GatewayServer, report: Callable[[str], None]) -> None:
    try:
        await server.start()
        brokers = ", ".join(f"{node_id} at {address}" for node_id, address in server.addresses.items())
        report(f"ready: clients connect to {server.address}; shown brokers: {brokers}")
        await stop.wait()
        report("stopping when the requests in flight are answered")
    finally:
        await server.stop()
