"""What a run needs beside a broker, a job and clients; kept apart, because plans and processes depend on it."""

from enum import StrEnum


class Need(StrEnum):
    """Something that a fault needs."""

    STANDBY = "standby"
    GATEWAY = "gateway"
    CLUSTER = "local-cluster"
    LOCAL_STATE = "local state"
    """The driver's JVM writes the state: not with executors of their own."""
    ONE_JOB = "no standby"
    THREE_BROKERS = "three brokers"
    JOB_CLOCK = "clock of the job"
    BROKER_CLOCK = "clock of the broker"
    SMALL_DISK = "small disk"


REFUSES = {
    Need.CLUSTER: {Need.STANDBY, Need.LOCAL_STATE, Need.THREE_BROKERS, Need.SMALL_DISK},
    Need.ONE_JOB: {Need.STANDBY},
    Need.THREE_BROKERS: {Need.STANDBY, Need.BROKER_CLOCK},
}
"""What cannot be in one run: too much for a small machine, or not built."""


def fit_together(needs: frozenset[Need]) -> bool:
    """Whether one run can have all of these."""
    return not any(need in needs and needs & refused for need, refused in REFUSES.items())
