"""All faults, by name, and how a job may end because of them."""

from collections.abc import Iterable

from tests.recovery.chaos.faults.brokers import (
    kill_broker,
    kill_gateway,
    pause_broker,
    stop_broker,
    stop_broker_for_a_minute,
    stop_broker_past_sessions,
    stop_gateway,
)
from tests.recovery.chaos.faults.fault import Fault, Target
from tests.recovery.chaos.faults.job import (
    change_options,
    die_at_next_starts,
    flood_while_down,
    force_two_actives,
    kill_at,
    kill_driver,
    kill_executor,
    kill_python_worker,
    kill_standby,
    kill_worker,
    pause_driver,
    stop_driver,
)
from tests.recovery.chaos.faults.machine import fill_disk, step_broker_clock, step_job_clock
from tests.recovery.chaos.faults.topics import delete_directory, grow_requests, grow_responses, make_requests_anew
from tests.recovery.chaos.faults.user_topics import create_topic_again
from tests.recovery.chaos.kill_points import Point
from tests.recovery.chaos.needs import Need

_STANDBY = frozenset({Need.STANDBY})
_LOCAL_STATE = frozenset({Need.LOCAL_STATE})
_GATEWAY = frozenset({Need.GATEWAY})

ANY_END = ("",)
"""Spark reports a failed task in its own words, which differ from moment to moment."""

PREDECESSOR = ("is in use by ", "has been active since")
"""A start finds that the former job has not quite gone; a supervisor starts it again."""

_OVERTAKEN = ("another job has become the active one",)
_NO_BROKER = (
    *_OVERTAKEN,
    "Kafka at ",
    "the brokers do not",
    "cannot be created",
    "cannot be announced",
    "could not be read to its end",
    "-coordinators' cannot be read",
    "no broker says",
)
"""A start needs the brokers; a running job waits for them."""

_ALL = (
    Fault("kill-driver", Target.JOB, kill_driver),
    Fault("kill-when-planned", Target.JOB, kill_at(Point.PLANNED), _LOCAL_STATE),
    Fault("kill-in-state-commit", Target.JOB, kill_at(Point.STATE_COMMIT), _LOCAL_STATE),
    Fault("kill-when-written", Target.JOB, kill_at(Point.WRITTEN), _LOCAL_STATE),
    Fault("kill-at-every-start", Target.JOB, kill_at(Point.WRITTEN, die_at_next_starts), _LOCAL_STATE | {Need.ONE_JOB}),
    Fault("kill-in-snapshot", Target.JOB, kill_at(Point.SNAPSHOT), _LOCAL_STATE),
    Fault("stop-driver", Target.JOB, stop_driver),
    Fault("pause-driver", Target.JOB, pause_driver, ends=_OVERTAKEN),
    Fault("kill-python-worker", Target.JOB, kill_python_worker, ends=ANY_END),
    Fault("kill-executor", Target.JOB, kill_executor, frozenset({Need.CLUSTER}), ends=ANY_END),
    Fault("kill-worker", Target.JOB, kill_worker, frozenset({Need.WORKERS}), ends=ANY_END),
    Fault("kill-active", Target.JOB, kill_driver, _STANDBY),
    Fault("stop-active", Target.JOB, stop_driver, _STANDBY),
    Fault("force-two-actives", Target.JOB, force_two_actives, _STANDBY, ends=_OVERTAKEN),
    Fault("kill-standby", Target.JOB, kill_standby, _STANDBY),
    Fault("change-options", Target.JOB, change_options),
    Fault("flood-while-down", Target.JOB, flood_while_down),
    Fault("stop-broker", Target.BROKER, stop_broker, ends=_NO_BROKER),
    Fault("stop-broker-for-a-minute", Target.BROKER, stop_broker_for_a_minute, is_alone=True, ends=_NO_BROKER),
    Fault("kill-broker", Target.BROKER, kill_broker, ends=_NO_BROKER),
    Fault("pause-broker", Target.BROKER, pause_broker, ends=_NO_BROKER),
    Fault("lose-one-broker-of-three", Target.BROKER, kill_broker, frozenset({Need.THREE_BROKERS}), ends=_NO_BROKER),
    Fault("kill-gateway", Target.GATEWAY, kill_gateway, _GATEWAY),
    Fault("stop-gateway", Target.GATEWAY, stop_gateway, _GATEWAY),
    Fault(
        "step-job-clock",
        Target.JOB,
        step_job_clock,
        frozenset({Need.JOB_CLOCK}),
        ends=("clock has gone back", *_OVERTAKEN),
    ),
    Fault("step-broker-clock", Target.BROKER, step_broker_clock, frozenset({Need.BROKER_CLOCK})),
    Fault("fill-disk", Target.JOB, fill_disk, frozenset({Need.SMALL_DISK}), ends=ANY_END),
    Fault("grow-responses", Target.JOB, grow_responses, ends=("partitions",)),
    Fault("grow-requests", Target.JOB, grow_requests, ends=("partitions",)),
    Fault("delete-directory", Target.JOB, delete_directory, ends=("deleted while the job was running",)),
    Fault(
        "stop-broker-past-sessions",
        Target.BROKER,
        stop_broker_past_sessions,
        is_alone=True,
        spares_clients=True,
        ends=_NO_BROKER,
    ),
    Fault("make-requests-anew", Target.JOB, make_requests_anew, is_alone=True, ends=("was deleted and created again",)),
    Fault("create-topic-again", Target.GATEWAY, create_topic_again, _GATEWAY),
)

FAULTS = {fault.name: fault for fault in _ALL}


def unexpected_ends(faults: Iterable[str], ends: Iterable[str]) -> list[str]:
    """The last lines of jobs that ended by themselves, without those that the injected faults explain."""
    allowed = [*PREDECESSOR, *(part for name in faults for part in FAULTS[name].ends)]
    return [line for line in ends if not any(part in line for part in allowed)]
