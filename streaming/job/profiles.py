"""Profiles: named trade-offs between latency and the cost of batches.

Spark looks for requests once in an interval, and runs a batch if there are any, or if a deadline is due. So the
interval bounds the cost of batches under load: CPU, and requests to an object store. It also determines the latency: a
request waits for the next batch, and a rebalance takes four batches. docs/performance.md has the figures of each
profile.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

ProfileName = Literal["latency", "balanced", "object-store"]


class Profile(NamedTuple):
    """``trigger_interval_ms`` is how long a request waits for others at most; ``cpu_share`` the share of the host's
    cores that the job may use for batches that begin sooner; ``spark`` are Spark settings."""

    trigger_interval_ms: int
    cpu_share: float
    spark: Mapping[str, str]


PROFILES: Mapping[ProfileName, Profile] = {
    # A batch starts as soon as the one before has ended, and Spark looks for requests a hundred times a second.
    "latency": Profile(0, 1.0, {}),
    "balanced": Profile(450, 0.5, {}),
    "object-store": Profile(
        2_000,
        0.0,
        {
            # The whole state is uploaded at most this often; batches in between upload only their changes.
            "spark.sql.streaming.stateStore.maintenanceInterval": "300s",
        },
    ),
}

DEFAULT_PROFILE: ProfileName = "balanced"
