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
    WORKERS = "workers of a cluster"
    """Only in a campaign on a cluster."""


REFUSES = {
    Need.CLUSTER: {Need.STANDBY, Need.LOCAL_STATE, Need.THREE_BROKERS, Need.SMALL_DISK},
    Need.ONE_JOB: {Need.STANDBY},
    Need.THREE_BROKERS: {Need.STANDBY, Need.BROKER_CLOCK},
}
"""What cannot be in one run: too much for a small machine, or not built."""

NOT_ON_A_CLUSTER = {Need.LOCAL_STATE, Need.SMALL_DISK, Need.THREE_BROKERS, Need.JOB_CLOCK}
"""What a run on a standalone cluster with an object store cannot have."""


def fit_together(needs: frozenset[Need], *, on_cluster: bool = False) -> bool:
    """Whether one run can have all of these. ``on_cluster``: it has a cluster anyway, whose executors are there."""
    needs -= {Need.CLUSTER} if on_cluster else set()
    return not any(need in needs and needs & refused for need, refused in REFUSES.items())


def are_met(needs: frozenset[Need], *, on_cluster: bool) -> bool:
    """Whether a run has what is needed: on one host, or on a standalone cluster with an object store."""
    return not needs & NOT_ON_A_CLUSTER if on_cluster else Need.WORKERS not in needs
