"""Named trades between latency and what a quiet coordinator costs; PERFORMANCE.md has the figures of each.

A batch that finds nothing to do costs nearly as much as one that answers a few requests, and there has to be one
whenever a deadline may have passed. So the time between two batches decides what idleness costs: cores, and on an
object store the requests that are paid for. It also decides how long a request waits, and a rebalance is four
batches.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

ProfileName = Literal["latency", "balanced", "object-store"]


class Profile(NamedTuple):
    """``trigger_interval_ms`` is the least time between the starts of two batches; ``spark`` are settings."""

    trigger_interval_ms: int
    spark: Mapping[str, str]


PROFILES: Mapping[ProfileName, Profile] = {
    # The next batch follows at once: more than a core, whether there is something to do or not.
    "latency": Profile(0, {}),
    "balanced": Profile(450, {}),
    "object-store": Profile(
        2_000,
        {
            # A snapshot of the whole state is uploaded this often at most; until then there are changelogs only.
            "spark.sql.streaming.stateStore.maintenanceInterval": "300s",
        },
    ),
}

DEFAULT_PROFILE: ProfileName = "balanced"
