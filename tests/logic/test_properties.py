"""Properties of every story: cutting the log differently changes nothing, the same batch gives the same bytes, ...

The driver also checks the invariants of :mod:`tests.logic.invariants` after every step of every story.
"""

import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from coordinator_logic import snapshot
from coordinator_logic.apis import APIS
from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.events import Request
from coordinator_logic.group import Group
from coordinator_logic.group.timer import EXPIRY
from coordinator_logic.groups.classic.records import StateChanged
from coordinator_logic.messages import ListGroupsRequest, ListGroupsResponse
from coordinator_logic.records import GroupDirectoryEntry, JournalEntry, fold
from coordinator_logic.states import State
from coordinator_logic.step import step
from tests.logic.driver import GROUP_ID, Driven, Joined
from tests.logic.handlers.test_matrix import COLUMNS, scene
from tests.logic.strategies import STORIES, Move, Story, values_of
from tests.support.properties import examples

ALLOWANCE_MS = 500
THOROUGH = examples(120)
SEEDS = st.integers(0, 2**32 - 1)


def played(moves: list[Move], **config: Any) -> Driven:
    """Play a story with one request a batch; the group after it."""
    driven = Driven(**config)
    story = Story(driven)
    for move in moves:
        story.play(move)
    return driven


def batches(log: list[Request], chance: Random, end: int, slack_ms: int) -> list[tuple[list[Request], int]]:
    """Cut the log into batches with legal times.

    A batch's time is legal if no deadline fires in it that should have fired after a request of a later batch: every
    such request was appended at most ``slack_ms`` before the batch's time. Deadlines that can remove something wait for
    the allowance, so for them the slack is the allowance. The initial delay does not wait, so with a delay the slack is
    0. Times of batches never decrease.
    """
    result: list[tuple[list[Request], int]] = []
    batch: list[Request] = []
    time = 0
    for i, request in enumerate(log):
        batch.append(request)
        if chance.random() < 0.5:
            continue
        latest = log[i + 1].place.timestamp + slack_ms if i + 1 < len(log) else end
        floor = max(time, request.place.timestamp)
        time = chance.choice((floor, latest, chance.randint(floor, latest)))
        result.append((batch, time))
        batch = []
        if chance.random() < 0.4:
            time = chance.choice((latest, chance.randint(time, latest)))
            result.append(([], time))
    return [*result, (batch, end)]


def run(plan: list[tuple[list[Request], int]], config: CoordinatorConfig) -> tuple[bytes, bytes | None, int | None]:
    """Run the batches; returns everything that they send, the last snapshot, and when the group is to be woken."""
    kept: bytes | None = None
    responses, journal, wake_at = [], [], None
    for requests, time in plan:
        group = None if kept is None else snapshot.decode(kept)
        result = step(GROUP_ID, group, requests, time, started_at=0, config=config)
        kept = None if result.group is None else snapshot.encode(result.group)
        responses += result.responses
        journal += result.journal
        wake_at = result.wake_at
    return msgspec.json.encode((responses, journal)), kept, wake_at


@pytest.mark.parametrize(
    ("delay_ms", "slack_ms"), [(3_000, 0), (0, ALLOWANCE_MS)], ids=["initial delay", "late by the allowance"]
)
@given(
    moves=STORIES,
    seed=SEEDS,
    tail_ms=st.sampled_from([0, 499, 2_000, 8_000, 100_000]),
    max_size=st.sampled_from([2, 100]),
    check_interval_ms=st.sampled_from([1_000, 45_000, 10**12]),
)
@THOROUGH
def test_cutting_the_log_into_batches_differently_changes_nothing(
    delay_ms: int,
    slack_ms: int,
    moves: list[Move],
    seed: int,
    tail_ms: int,
    max_size: int,
    check_interval_ms: int,
) -> None:
    driven = played(
        moves,
        group_initial_rebalance_delay_ms=delay_ms,
        expiry_allowance_ms=ALLOWANCE_MS,
        group_max_size=max_size,
        offsets_retention_minutes=1,
        offsets_retention_check_interval_ms=check_interval_ms,
    )
    # No batch may be later than the last one, which may be as late as is legal.
    end = driven.log[-1].place.timestamp + slack_ms + tail_ms
    whole = run([(driven.log, end)], driven.config)
    chance = Random(seed)
    for _ in range(3):
        assert run(batches(driven.log, chance, end, slack_ms), driven.config) == whole
    one_by_one = [([request], request.place.timestamp) for request in driven.log]
    assert run([*one_by_one, ([], end)], driven.config) == whole
    for state in {record.to_state for record in driven.records if isinstance(record, StateChanged)}:
        event(state)
    for reached in {type(record).__name__ for record in driven.records}:
        event(reached)


def test_another_process_writes_the_same_bytes() -> None:
    """A batch may run again in a worker that iterates over sets in another order (hash randomization)."""
    program = (
        "import random; from hashlib import sha256; from tests.logic import test_properties as t;"
        "from tests.logic.strategies import ACTIONS, DELAYS_MS, Move, Story; chance = random.Random(20);"
        "moves = [Move(chance.randrange(5), chance.choice(ACTIONS), chance.choice(DELAYS_MS), chance.randrange(12))"
        " for _ in range(400)];"
        "driven = t.played(moves); sent, kept, wake_at = t.run([(driven.log, driven.now + 100)], driven.config);"
        "print(len(driven.journal), wake_at, sha256(sent + (kept or b'')).hexdigest())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(outputs) == 1
    assert int(outputs.pop().split()[0]) > 100, "the story has too few changes"


@given(moves=STORIES, tail_ms=st.integers(0, 60_000))
@THOROUGH
def test_a_group_is_to_be_woken_exactly_when_a_deadline_fires(moves: list[Move], tail_ms: int) -> None:
    driven = played(moves, expiry_allowance_ms=ALLOWANCE_MS)
    end = driven.now + tail_ms
    while driven.wake_at is not None and driven.wake_at <= end:
        before, wake_at = driven.snapshot, driven.wake_at
        driven.step([], batch_time=wake_at - 1)
        assert (driven.snapshot, driven.wake_at) == (before, wake_at), "woken too late"
        driven.step([], batch_time=wake_at)
        assert driven.snapshot != before, "woken for nothing"


@given(moves=STORIES, away_ms=st.integers(0, 1_000_000))
@THOROUGH
def test_after_a_restart_nothing_is_due_before_a_full_timeout(moves: list[Move], away_ms: int) -> None:
    driven = played(moves, group_initial_rebalance_delay_ms=0)
    if not driven.exists:
        return
    driven.now += away_ms
    driven.restart()
    before, timers = driven.snapshot, driven.group.timers.values()
    shortest = min((timer.timeout_ms for timer in timers if timer.kind != EXPIRY), default=100_000)
    driven.step([], batch_time=driven.now + shortest - 1)
    assert driven.snapshot == before


@given(moves=STORIES, repeat_from=st.integers(0, 200))
@examples(50)
def test_a_journal_with_repeats_folds_to_the_group(moves: list[Move], repeat_from: int) -> None:
    driven = played(moves)
    journal = driven.journal
    assert fold([*journal, *journal[repeat_from:]]) == fold(journal)
    assert (fold(journal) is not None) == driven.exists


# ---- any request -----------------------------------------------------------------------------------------------

AnyRequest = tuple[str, int, dict[str, object], Any]
BODIES = {name: values_of(api.request_type) for name, api in APIS.items()}


@st.composite
def requests(draw: st.DrawFn) -> AnyRequest:
    """An API, one of its versions, fields to overwrite with those of the scene, and a body."""
    name = draw(st.sampled_from(sorted(APIS)))
    api = APIS[name]
    version = draw(st.integers(api.min_version, api.max_version))
    fields: dict[str, object] = {}
    if draw(st.booleans()):
        fields |= {"protocol_type": "consumer", "session_timeout_ms": draw(st.integers(10, 60_000))}
        fields |= {"group_id": GROUP_ID, "groups_names": [GROUP_ID]}
    return name, version, fields, draw(BODIES[name])


def overlaid(body: Any, fields: dict[str, object], sender: Joined) -> Any:
    """Overwrite those of the fields that the body has, and the member's identity."""
    identity = {
        "member_id": sender.member_id,
        "generation_id": sender.generation_id,
        "group_instance_id": sender.group_instance_id,
        "generation_id_or_member_epoch": sender.generation_id,
    }
    known = {name: value for name, value in (fields | identity).items() if hasattr(body, name)}
    return msgspec.structs.replace(body, **known)


@given(
    column=st.sampled_from(COLUMNS),
    sent=st.lists(
        st.tuples(requests(), st.sampled_from(["leader", "follower", "pending", "no member", "unmodified"])),
        min_size=1,
        max_size=8,
    ),
    pause_ms=st.sampled_from([0, 1_000, 400_000]),
)
@examples(300)
def test_no_content_of_a_request_breaks_the_group(
    column: str, sent: list[tuple[AnyRequest, str]], pause_ms: int
) -> None:
    the_scene = scene(column)
    driven = the_scene.driven
    senders = {
        "leader": the_scene.leader,
        "follower": the_scene.follower,
        "pending": Joined(the_scene.pending),
        "no member": Joined(""),
    }
    for (api, version, fields, body), sender in sent:
        body = body if sender == "unmodified" else overlaid(body, fields, senders[sender])
        answer = driven.send(api, body, version=version)
        assert api in ("JoinGroup", "SyncGroup") or not answer.parked
        if not answer.parked:
            assert type(answer.body) is APIS[api].response_type
        driven.sleep(pause_ms)
    if driven.exists and driven.state() is not State.DEAD:
        driven.sleep(3_000_000_000)
        assert driven.state() is State.EMPTY, "every member expires"


# ---- round trips -----------------------------------------------------------------------------------------------

TYPES = [
    *(api.request_type for api in APIS.values()),
    *(api.response_type for api in APIS.values()),
    ListGroupsRequest,
    ListGroupsResponse,
    JournalEntry,
    GroupDirectoryEntry,
]


@pytest.mark.parametrize("message_type", TYPES, ids=lambda message_type: message_type.__name__)
@given(data=st.data())
@examples(30)
def test_every_message_survives_json_unmodified(message_type: type[msgspec.Struct], data: st.DataObject) -> None:
    message = data.draw(values_of(message_type))
    encoded = msgspec.json.encode(message)
    assert msgspec.json.decode(encoded, type=message_type) == message
    assert msgspec.json.encode(msgspec.json.decode(encoded, type=message_type)) == encoded


@given(values_of(Group).map(lambda group: msgspec.structs.replace(group, stored_offset_count=None)))
@examples(200)
def test_every_group_survives_its_snapshot_unmodified(group: Group) -> None:
    encoded = snapshot.encode(group)
    decoded = snapshot.decode(encoded)
    assert snapshot.encode(decoded) == encoded
    assert decoded == group
    assert list(decoded.part.member_ids) == list(group.part.member_ids)
    assert list(decoded.timers) == list(group.timers)
    assert snapshot.encode(decoded) == encoded
