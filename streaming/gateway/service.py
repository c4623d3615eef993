"""Runs a gateway until SIGTERM or Ctrl-C."""

import asyncio
import gc
import resource
import signal
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager, suppress

from streaming.contract.identity import read_identity_keys
from streaming.contract.monitoring_server import serving_monitoring
from streaming.contract.topics import TopicNames
from streaming.contract.waits import announcing_waits
from streaming.embedded.interruption import exit_code, take_time_to_stop
from streaming.embedded.stop_signals import STOP_SIGNALS, end_at_once, restored_handlers
from streaming.gateway.groups.serving import serving_groups
from streaming.gateway.groups.timeout_policies import GroupTimeouts
from streaming.gateway.health import GatewayHealth
from streaming.gateway.instrumentation import GatewayMetrics
from streaming.gateway.options import CLIENT_ID, GatewayOptions
from streaming.gateway.proxy.addresses import coordinator_node
from streaming.gateway.proxy.cluster import Cluster
from streaming.gateway.proxy.server import GatewayServer
from streaming.gateway.security.own_rights import warn_of_missing_rights
from streaming.gateway.transactions.serving import serving_transactions
from streaming.gateway.wire.client_request import ServedApi
from streaming.gateway.wire.loop_share import LoopShare

OTHER_OPEN_FILES = 200

CLOSE_LIMIT_SECONDS = 4.0
"""How long a stop may take after the grace period for requests in flight: what waits for the brokers is left."""

FULL_COLLECTION_THRESHOLD = 1000
"""Python's default is 10. A full garbage collection visits every object, and a few large requests are 100,000 of them:
each would hold the event loop for 40 ms. Younger generations are collected as usual."""


def run_gateway(options: GatewayOptions, report: Callable[[str], None]) -> None:
    """Serve until SIGTERM or Ctrl-C, then answer the requests in flight within ``shutdown-grace-ms``.

    Call it on the main thread. Raises :class:`streaming.contract.errors.CannotRun`.

    report: receives each status line for the user; the line that begins with ``ready`` means that clients may connect.
    """
    _allow_connections(options.limits.max_connections)
    with restored_handlers():
        asyncio.run(_serve(options, report))


def _allow_connections(count: int) -> None:
    """Raise the limit of open files: each client's connection may have an upstream connection."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * count + OTHER_OPEN_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


async def _serve(options: GatewayOptions, report: Callable[[str], None]) -> None:
    stop = asyncio.Event()
    stop_limit = options.limits.shutdown_grace_ms / 1000 + CLOSE_LIMIT_SECONDS
    # Also the end of the process waits for threads, and those may wait for the brokers.
    late = threading.Timer(stop_limit, _end_at_once, [stop_limit, report])
    late.daemon = True

    def request_stop() -> None:
        if not stop.is_set():
            stop.set()
            late.start()

    _on_stop_signals(asyncio.get_running_loop(), request_stop)
    gc.set_threshold(*gc.get_threshold()[:2], FULL_COLLECTION_THRESHOLD)
    gc.freeze()
    metrics = GatewayMetrics()
    loop_share = LoopShare(options.limits.client_loop_percent / 100)
    served: dict[int, ServedApi] = {}
    cluster = Cluster(options, served)
    health = GatewayHealth(cluster, options.metadata_refresh_ms / 1000)

    def is_coordinator(group_id: str, node_id: int) -> bool:
        return coordinator_node(group_id, cluster.node_ids()) == node_id

    identity_key = next(iter(read_identity_keys(options.identity_key_file)), None)
    async with (
        _monitoring(options, metrics, health, report),
        serving_groups(
            options,
            is_coordinator,
            cluster,
            identity_key,
            timeouts=GroupTimeouts(topic_refresh_seconds=options.metadata_refresh_ms / 1000),
            loop_share=loop_share,
            brokers=cluster,
            count_contact=lambda outcome: metrics.first_contacts.labels(outcome).inc(),
        ) as groups,
        serving_transactions(options, groups, cluster) as transactions,
        health.watching(groups),
    ):
        metrics.watch(groups.directory)
        served.update({**groups.apis, **transactions})
        server = GatewayServer(options, cluster, served, metrics, loop_share, groups.topics_changed)
        await _run_until(stop, server, report)
    report("stopped")


def _on_stop_signals(loop: asyncio.AbstractEventLoop, request_stop: Callable[[], None]) -> None:
    """Call the function on the loop at each stop signal.

    Not with ``add_signal_handler``, which would hide the signals from the thread that watches for a second Ctrl-C.
    """

    def handle(_number: int, _frame: object) -> None:
        # The loop may have ended a moment ago.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(request_stop)

    for number in STOP_SIGNALS:
        signal.signal(number, handle)


def _end_at_once(seconds: float, report: Callable[[str], None]) -> None:
    report(f"the stop has taken {seconds:g} s: ending at once")
    end_at_once(exit_code())


@asynccontextmanager
async def _monitoring(
    options: GatewayOptions, metrics: GatewayMetrics, health: GatewayHealth, report: Callable[[str], None]
) -> AsyncIterator[None]:
    """Serve metrics and health while the block runs, if the options name a port."""
    with ExitStack() as stack:
        if options.metrics_port is not None:
            served = serving_monitoring(options.metrics_host, options.metrics_port, metrics.registry, health.checks)
            report(f"serving metrics at port {stack.enter_context(served)}")
        yield


async def _run_until(stop: asyncio.Event, server: GatewayServer, report: Callable[[str], None]) -> None:
    try:
        with announcing_waits(report, server.options.bootstrap_servers):
            await server.start()
        brokers = ", ".join(f"{node_id} at {address}" for node_id, address in server.addresses.items())
        take_time_to_stop()
        report(f"ready: clients connect to {server.address}; advertised brokers: {brokers}")
        options = server.options
        own = options.bootstrap_servers, CLIENT_ID, options.kafka, TopicNames(options.topic_prefix)
        # A stop does not wait for it.
        threading.Thread(target=warn_of_missing_rights, args=own, name="own-rights", daemon=True).start()
        await stop.wait()
        report("stopping: answering the requests in flight")
    finally:
        await server.stop()
