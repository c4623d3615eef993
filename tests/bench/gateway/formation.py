"""The time from the start of librdkafka's consumers until their group is Stable, through a gateway and at a broker.

    python -m tests.bench.gateway.formation [--members 10] [--groups 5] [--delay-ms 3000] [--profile balanced]

Broker, coordinator, gateway and consumers run on this machine. The consumers of a group start at the same time, with
librdkafka's defaults. The group is Stable when each of them has an assignment. The protocol's part of that time is the
initial delay, doubled when members join during it; the rest is printed.
"""

import argparse
import tempfile
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from streaming.embedded.broker import EmbeddedBroker
from streaming.job.profiles import DEFAULT_PROFILE, PROFILES
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.gateway_process import GatewayProcess
from tests.support.topics import create_topic

LIMIT_SECONDS = 60.0
POLL_SECONDS = 0.05
TOPIC = "formation"


class Forming:
    """A group whose consumers start at the same time."""

    def __init__(self, bootstrap_servers: str, size: int) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._group_id = f"forming-{uuid.uuid4().hex[:8]}"
        self._owned: dict[int, int] = {}
        self._size = size
        self._lock = threading.Lock()
        self._formed = threading.Event()
        self._formed_at = 0.0

    def form(self) -> float:
        """Run the consumers until all are assigned; return the seconds from their start to the last assignment."""
        begin = time.perf_counter()
        with ThreadPoolExecutor(self._size) as pool:
            for done in [pool.submit(self._consume, number) for number in range(self._size)]:
                done.result()
        return self._formed_at - begin

    def _consume(self, number: int) -> None:
        def assigned(_consumer: Consumer, partitions: list[TopicPartition]) -> None:
            with self._lock:
                # A generation that began without all members gives some of them more than one partition.
                self._owned[number] = len(partitions)
                if list(self._owned.values()) == [1] * self._size:
                    self._formed_at = time.perf_counter()
                    self._formed.set()

        consumer = Consumer({"bootstrap.servers": self._bootstrap_servers, "group.id": self._group_id})
        consumer.subscribe([TOPIC], on_assign=assigned)
        deadline = time.monotonic() + LIMIT_SECONDS
        while not self._formed.is_set():
            if time.monotonic() > deadline:
                raise TimeoutError(f"group {self._group_id} did not form in {LIMIT_SECONDS:.0f} s: {self._owned}")
            consumer.poll(POLL_SECONDS)
        consumer.close()


def measure(name: str, bootstrap_servers: str, members: int, groups: int, delay_ms: int) -> None:
    """Form groups one after the other, and print their times."""
    seconds = sorted(Forming(bootstrap_servers, members).form() for _ in range(groups))
    protocol = delay_ms / 1000 * (1 if members == 1 else 2)
    above = [f"{each - protocol:.2f}" for each in seconds]
    print(f"{name}: {members} members, seconds above the protocol's {protocol:g} s: {', '.join(above)}", flush=True)


def main() -> None:
    """Measure both, and print the times."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--groups", type=int, default=5)
    parser.add_argument("--delay-ms", type=int, default=3_000)
    parser.add_argument("--profile", choices=sorted(PROFILES), default=DEFAULT_PROFILE)
    arguments = parser.parse_args()
    delay = {"group.initial.rebalance.delay.ms": arguments.delay_ms}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gateway-formation-")))
        broker = EmbeddedBroker(properties={name: str(value) for name, value in delay.items()})
        stack.enter_context(broker)
        create_topic(broker.bootstrap_servers, TOPIC, arguments.members)
        options = {"profile": arguments.profile, **delay}
        coordinator = CoordinatorProcess(broker.bootstrap_servers, folder, options, defaults={})
        stack.callback(coordinator.kill)
        coordinator.start()
        gateway = GatewayProcess(broker.bootstrap_servers, coordinator.topics.prefix)
        stack.callback(gateway.kill)
        gateway.start()
        for name, address in (("broker", broker.bootstrap_servers), ("gateway", gateway.bootstrap_servers)):
            measure(name, address, arguments.members, arguments.groups, arguments.delay_ms)


if __name__ == "__main__":
    main()
