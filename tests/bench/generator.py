"""The load generator: one process, which does what the plan says and writes what it finds, a line of JSON each.

python -m tests.bench.generator '{"bootstrap_servers": ..., "driver_pid": ...}'
"""

import sys
import time

import msgspec

from streaming.client import CoordinatorClient
from tests.bench.figures import Event, Idle, Plan, Progress
from tests.bench.formation import measure_formation
from tests.bench.load import measure_load, stable_groups
from tests.bench.usage import cpu_seconds


def tell(event: Event) -> None:
    """Write a line for whoever started this process."""
    sys.stdout.buffer.write(msgspec.json.encode(event) + b"\n")
    sys.stdout.buffer.flush()


def run(plan: Plan) -> None:
    """Formations, loads, silence."""
    scale = plan.scale
    with CoordinatorClient(plan.bootstrap_servers, topic_prefix=plan.topic_prefix, client_id="bench") as client:
        tell(Progress("forming a first group, which is not counted"))
        # The first producer at a new broker waits while that prepares its producer ids, and a new JVM is slow.
        measure_formation(client, 1, 1)
        for members in scale.group_sizes:
            tell(Progress(f"forming {scale.groups_formed} group(s) of {members}"))
            tell(measure_formation(client, members, scale.groups_formed))
        for rate in scale.rates:
            tell(Progress(f"forming {rate} groups that heartbeat"))
            heartbeats = stable_groups(client, rate)
            tell(Progress(f"{rate} requests/s for {scale.warm_up_seconds:g} + {scale.measured_seconds:g} s"))
            tell(measure_load(client, heartbeats, plan))
        tell(Progress(f"saying nothing for {scale.idle_seconds:g} s"))
        used = cpu_seconds(plan.driver_pid)
        time.sleep(scale.idle_seconds)
        tell(Idle(round((cpu_seconds(plan.driver_pid) - used) / scale.idle_seconds, 3)))


if __name__ == "__main__":
    run(msgspec.json.decode(sys.argv[1], type=Plan))
