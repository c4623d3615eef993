"""Profiles: named trade-offs between latency and the cost of batches.

A batch starts when a request arrives that somebody waits for, as long as the job has CPU time left of its budget, and
otherwise an interval after the batch before. Both bound the cost of batches under load: CPU, and requests to an object
store. A rebalance takes four batches. docs/performance.md has the figures of each profile.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

ProfileName = Literal["latency", "balanced", "object-store"]


class Profile(NamedTuple):
    """``trigger_interval_ms`` is the time between batches that nobody waits for, or when the budget is used up;
    ``cpu_share`` the share of the host's cores that is the budget; ``spark`` are Spark settings."""

    trigger_interval_ms: int
    cpu_share: float
    spark: Mapping[str, str]


PROFILES: Mapping[ProfileName, Profile] = {
    # A batch starts as soon as there is a request and the one before has ended.
    "latency": Profile(0, 1.0, {}),
    "balanced": Profile(450, 0.75, {}),
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
