"""The brokers of a campaign: one for most runs, three for some. A run stops, kills and pauses them."""

from base64 import urlsafe_b64encode
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

from streaming.embedded.broker import EmbeddedBroker
from streaming.embedded.environment import in_environment
from streaming.embedded.ports import free_ports
from tests.recovery.chaos.clocks import SteppedClock

HOST = "127.0.0.1"


class Cluster:
    """Brokers with fixed addresses. ``clock`` is that of all of them, None if it cannot be stepped."""

    def __init__(self, nodes: list[EmbeddedBroker], clock: SteppedClock | None = None) -> None:
        self.nodes = nodes
        self.clock = clock

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers."""
        return ",".join(node.bootstrap_servers for node in self.nodes)

    def start(self, node: EmbeddedBroker) -> None:
        """Start a broker that does not run."""
        # A job that starts meanwhile inherits the broker's clock: then both are on one machine, so to speak.
        with in_environment({} if self.clock is None else self.clock.environment):
            node.start()

    def ensure_running(self) -> None:
        """Start the brokers that do not run."""
        for node in self.nodes:
            if not node.is_running:
                self.start(node)

    def stop(self) -> None:
        """Stop all brokers: first those that are not the controller, without whom they could not stop in order."""
        for node in reversed(self.nodes):
            node.stop()


def one_broker(folder: Path, clock: SteppedClock | None) -> Cluster:
    """A broker, started."""
    cluster = Cluster([EmbeddedBroker(data_dir=folder)], clock)
    cluster.ensure_running()
    return cluster


def three_brokers(folder: Path) -> Cluster:
    """Three brokers, started; the first one is the controller, too. Topics have three replicas, two of them in sync."""
    *ports, controller = free_ports(4)
    replicated = {
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "default.replication.factor": "3",
        "min.insync.replicas": "2",
        "offsets.topic.replication.factor": "3",
        "transaction.state.log.replication.factor": "3",
        "transaction.state.log.min.isr": "2",
    }
    first = {"listeners": f"PLAINTEXT://{HOST}:{ports[0]},CONTROLLER://{HOST}:{controller}"}
    nodes = [EmbeddedBroker(data_dir=folder / "1", port=ports[0], properties=replicated | first)]
    for number, port in enumerate(ports[1:], 2):
        joining = {
            "process.roles": "broker",
            "node.id": str(number),
            "listeners": f"PLAINTEXT://{HOST}:{port}",
        }
        nodes.append(EmbeddedBroker(data_dir=folder / str(number), port=port, properties=replicated | joining))
    cluster = Cluster(nodes)
    with ExitStack() as on_failure:
        on_failure.callback(cluster.stop)
        cluster.start(nodes[0])
        for number in (2, 3):
            _format(folder / str(number) / "log", number, nodes[0].cluster_id)
        cluster.ensure_running()
        on_failure.pop_all()
    return cluster


def _format(log: Path, number: int, cluster_id: str) -> None:
    """Write what Kafka's tool would: it would make a cluster of its own."""
    log.mkdir(parents=True, exist_ok=True)
    directory_id = urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")
    lines = ("version=1", f"node.id={number}", f"cluster.id={cluster_id}", f"directory.id={directory_id}")
    (log / "meta.properties").write_text("\n".join(lines) + "\n")
