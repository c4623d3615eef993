"""The defects, each planted by a function that changes the project's classes in this process."""

import os
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[4]
LOST_SHARE = 0.02
VARIABLE = "CHAOS_BROKEN"


def _plant(owner: Any, name: str, defect: object) -> None:
    """Replace a name of a module or a class."""
    assert hasattr(owner, name), f"{owner} has no {name}"
    setattr(owner, name, defect)


def random_member_ids() -> None:
    """Generated member ids are random: a batch that runs again gives other ones."""
    from uuid import uuid4

    from coordinator_logic.groups import classic_protocol
    from coordinator_logic.groups.classic.requests import join_group

    def generate(_turn: object, request: Any, body: Any) -> str:
        return f"{body.group_instance_id or request.client_id}-{uuid4()}"

    _plant(classic_protocol, "generated_member_id", generate)
    _plant(join_group, "generated_member_id", generate)


def state_not_stored() -> None:
    """Some groups' answers leave, and their state stays as it was before that batch."""
    from streaming.job.group_batch import processing
    from streaming.job.group_batch.state_row import load, store

    before: dict[str, Any] = {}

    def remembering(stored: Any) -> Any:
        group = load(stored)
        if group is not None:
            before[group.group_id] = stored
        return group

    def forgetful(group: Any, limits: Any) -> Any:
        former = None if group is None else before.pop(group.group_id, None)
        if former is not None and random.random() < LOST_SHARE:
            return former
        return store(group, limits)

    _plant(processing, "load", remembering)
    _plant(processing, "store", forgetful)


def old_generations_commit() -> None:
    """A commit of an old generation is accepted."""
    from coordinator_logic.groups.classic.data import ClassicGroup

    def lenient(group: Any, member_id: str, instance: str | None, _generation: int) -> Any:
        return group.check_member(member_id, instance)

    _plant(ClassicGroup, "check_generation", lenient)


def no_fresh_session() -> None:
    """A restart gives no member a fresh session.

    Deadline checks come behind the heartbeats that waited for the job, so a restart alone expels nobody: what shows it
    is an outage of the brokers, in which no heartbeat can be appended, and after which some members come back late.
    """
    from streaming.job.group_batch.settings import Settings

    _plant(Settings, "started_at", lambda _self, _batch_time: 0)


def no_epoch_check() -> None:
    """A job that another one has overtaken does not notice, and clients take its answers, too.

    Either alone does no harm: the job ends when Spark refuses its next batch, and clients drop what it answers until
    then.
    """
    from streaming.job.election.candidate import Candidate

    _plant(Candidate, "failure", property(lambda _self: None))


def no_fence() -> None:
    """A standby does not wait, and a job becomes active without the fence: the brokers accept its announcements beside
    those of others."""
    from uuid import uuid4

    from streaming.job.election.candidate import Candidate
    from streaming.job.election.lease import Lease

    fenced = Lease._newest_producer

    def unfenced(lease: Lease) -> Any:
        lease._settings["transactional.id"] = str(uuid4())
        return fenced(lease)

    _plant(Candidate, "is_free", lambda _self: True)
    _plant(Lease, "_newest_producer", unfenced)


NO_EPOCH_CHECK = "no-epoch-check"

DEFECTS: dict[str, Callable[[], None]] = {
    "random-member-ids": random_member_ids,
    "state-not-stored": state_not_stored,
    "old-generations-commit": old_generations_commit,
    "no-fresh-session": no_fresh_session,
    "no-fence": no_fence,
    NO_EPOCH_CHECK: no_epoch_check,
}

SHOWN_BY = {
    "random-member-ids": "kill-when-written",
    "state-not-stored": "kill-driver",
    "old-generations-commit": "pause-driver",
    "no-fresh-session": "stop-broker-past-sessions",
    "no-fence": "force-two-actives",
    NO_EPOCH_CHECK: "force-two-actives",
}
"""By defect, the fault that shows it best."""


def is_epoch_checked(environment: Mapping[str, str]) -> bool:
    """Whether the clients of a run with these variables drop the answers of a job that was overtaken."""
    return environment.get(VARIABLE) != NO_EPOCH_CHECK


def environment_of(name: str) -> Mapping[str, str]:
    """The environment variables of a process in which a defect is planted."""
    folders = [str(Path(__file__).parent), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {VARIABLE: name, "PYTHONPATH": os.pathsep.join(folders)}
