"""Profiles: named trade-offs between latency and the cost of an idle coordinator.

Batches run even when there are no requests, because a deadline may have passed, and an idle batch costs nearly as much
as one with a few requests. So the interval between batches determines the cost of idling: CPU, and requests to an
object store. It also determines the latency: a request waits for the next batch, and a rebalance takes four batches.
docs/performance.md has the figures of each profile.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

ProfileName = Literal["latency", "balanced", "object-store"]


class Profile(NamedTuple):
    """``trigger_interval_ms`` is the minimum time between the starts of two batches; ``spark`` are Spark settings."""

    trigger_interval_ms: int
    spark: Mapping[str, str]


PROFILES: Mapping[ProfileName, Profile] = {
    # A batch starts as soon as the one before has ended: more than a core is busy, even when idle.
    "latency": Profile(0, {}),
    "balanced": Profile(450, {}),
    "object-store": Profile(
        2_000,
        {
            # The whole state is uploaded at most this often; batches in between upload only their changes.
            "spark.sql.streaming.stateStore.maintenanceInterval": "300s",
        },
    ),
}

DEFAULT_PROFILE: ProfileName = "balanced"
