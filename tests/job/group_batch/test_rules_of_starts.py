"""A batch that runs again gives its old bytes, whatever rules and keys the job has by then."""

from pathlib import Path

import msgspec
import pytest

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.messages import RequestEnvelope
from streaming.contract.errors import CannotRun
from streaming.contract.identity import IdentityKeys, signed
from streaming.contract.rights.group_acls import EVERYTHING_SIGNED, GroupAcl, GroupAcls
from streaming.contract.topics import TopicNames
from streaming.job.group_batch.replay import process_batch
from streaming.job.group_batch.settings import Settings
from streaming.job.group_batch.starts import Start
from streaming.job.options import JobOptions
from streaming.job.rows.records import KafkaRecord, Row
from streaming.job.senders import Senders, missing_keys, read_senders
from tests.support.request_events import commit, dumped

PLANNED = 5_000
ALICE, OLD_KEY, NEW_KEY = "User:alice", b"o" * 32, b"n" * 32
OLD_KEYS, NEW_KEYS = (IdentityKeys((), {ALICE: (key,)}) for key in (OLD_KEY, NEW_KEY))
BOTH_KEYS = IdentityKeys((), {ALICE: (OLD_KEY, NEW_KEY)})

NOBODY = GroupAcls((GroupAcl(principal="User:nobody", group="*", operations=("All",)),))


def record(key: bytes | None, number: int) -> KafkaRecord:
    value = dumped(commit("g", number, principal=ALICE, correlationId=f"c-{number}"))
    if key is not None:
        value = msgspec.json.encode(signed(msgspec.json.decode(value, type=RequestEnvelope), "g", key))
    return KafkaRecord(1_000, 0, number, b"g", value)


RECORDS = [record(key, number) for number, key in enumerate([OLD_KEY, NEW_KEY, None])]


def start(epoch: int, senders: Senders, **fields: object) -> Start:
    """A start of the job with these keys and rules, as it is read from the checkpoint."""
    made = Start(
        started_at=1_000 * epoch,
        config=CoordinatorConfig(job_epoch=epoch),
        key_ids=senders.keys.ids(),
        group_acls=senders.acls,
        **fields,  # type: ignore[arg-type]
    )
    return msgspec.json.decode(msgspec.json.encode(made), type=Start)


def rows(senders: Senders, *starts: Start) -> list[Row]:
    """The rows of the batch that was planned at :data:`PLANNED`, by a job with these keys and rules."""
    config = starts[-1].config
    settings = Settings(
        TopicNames(),
        4,
        config or CoordinatorConfig(),
        starts,
        has_deadline_checks=True,
        identity_keys=senders.keys,
        acls=senders.acls,
    )
    return process_batch(settings, "g", list(RECORDS), None, PLANNED).rows


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Senders(OLD_KEYS, EVERYTHING_SIGNED), Senders(OLD_KEYS, NOBODY)),
        (Senders(OLD_KEYS, NOBODY), Senders(OLD_KEYS, EVERYTHING_SIGNED)),
        (Senders(OLD_KEYS, EVERYTHING_SIGNED), Senders(OLD_KEYS, None)),
        (Senders(OLD_KEYS, None), Senders(OLD_KEYS, EVERYTHING_SIGNED)),
        (Senders(OLD_KEYS, EVERYTHING_SIGNED), Senders(BOTH_KEYS, EVERYTHING_SIGNED)),
        (Senders(OLD_KEYS, None), Senders(BOTH_KEYS, None)),
    ],
    ids=["fewer rights", "more rights", "switched off", "switched on", "a new key", "a new key without rules"],
)
def test_a_batch_that_runs_again_is_judged_by_the_rules_that_it_was_planned_with(
    before: Senders, after: Senders
) -> None:
    planner = start(1, before)
    planned = rows(before, planner)
    now = start(9, after, open_batch_time=PLANNED, open_batch_epoch=1)
    assert rows(after, planner, now) == planned
    # The next batch of the same job is judged by the new ones.
    assert rows(after, planner, start(9, after)) != planned


def test_requests_that_are_replayed_are_judged_by_the_rules_with_which_they_were_read() -> None:
    before, after = Senders(OLD_KEYS, EVERYTHING_SIGNED), Senders(OLD_KEYS, NOBODY)
    planner = start(1, before)
    fields = {"replay_until": {0: 3}, "replay_until_time": 2_000, "copied_epoch": 1}
    now = start(4, after, **fields)
    assert now.replays
    journal = TopicNames().journal
    written = [row.value for row in rows(before, planner) if row.topic == journal]
    assert [row.value for row in rows(after, planner, now) if row.topic == journal] == written != []


def test_a_start_whose_file_is_lost_has_the_present_rules() -> None:
    now = Senders(OLD_KEYS, NOBODY)
    lost = Start(started_at=1_000)
    again = start(9, now, open_batch_time=PLANNED, open_batch_epoch=1)
    assert {row.topic for row in rows(now, lost, again)} == {TopicNames().responses, TopicNames().rejects}


def test_a_start_warns_of_keys_that_a_batch_needs_which_runs_again() -> None:
    planner = start(1, Senders(BOTH_KEYS, None))
    runs_again = start(9, Senders(NEW_KEYS, None), open_batch_time=PLANNED, open_batch_epoch=1)
    (warning,) = missing_keys([planner, runs_again], NEW_KEYS)
    assert warning.startswith("the batch that runs again may have signatures of 1 key that identity-key-file and ")
    assert list(missing_keys([planner, runs_again], BOTH_KEYS)) == []
    assert list(missing_keys([planner, start(9, Senders(NEW_KEYS, None))], NEW_KEYS)) == []
    replaying = start(9, Senders(NEW_KEYS, None), replay_until={0: 3})
    (warning,) = missing_keys([planner, replaying], NEW_KEYS)
    assert warning.startswith("requests that are replayed may have signatures of 1 key ")
    assert list(missing_keys([Start(started_at=1_000), replaying], NEW_KEYS)) == []


def options(**given: object) -> JobOptions:
    return JobOptions(bootstrap_servers="-", checkpoint="-", **given)  # type: ignore[arg-type]


def written(file: Path, content: bytes) -> str:
    file.write_bytes(content)
    return str(file)


def test_what_the_options_say_about_senders_is_read_together(tmp_path: Path) -> None:
    gateways = written(tmp_path / "identity.key", NEW_KEY)
    principals = written(tmp_path / "principal.key", b"User:alice " + OLD_KEY)
    rule = b'[[acls]]\nprincipal = "User:nobody"\ngroup = "*"\noperations = ["All"]\n'
    acls = written(tmp_path / "acls.toml", rule)
    assert read_senders(options()) == Senders(IdentityKeys(), None)
    assert read_senders(options(identity_key_file=gateways)) == Senders(IdentityKeys((NEW_KEY,)), None)
    required = options(principal_key_file=principals, require_signature=True)
    assert read_senders(required) == Senders(OLD_KEYS, EVERYTHING_SIGNED)
    both = options(
        identity_key_file=gateways, principal_key_file=principals, group_acl_file=acls, require_signature=True
    )
    assert read_senders(both) == Senders(IdentityKeys((NEW_KEY,), {ALICE: (OLD_KEY,)}), NOBODY)


def test_what_would_refuse_everyone_or_nobody_is_refused_at_the_start(tmp_path: Path) -> None:
    acls = written(tmp_path / "acls.toml", b'[[acls]]\nprincipal = "User:a"\ngroup = "*"\noperations = ["All"]\n')
    for given, option in (
        ({"group_acl_file": acls}, "group-acl-file"),
        ({"require_signature": True}, "require-signature"),
    ):
        with pytest.raises(CannotRun, match=f"^{option} is given, but no key with which a sender could sign: give "):
            read_senders(options(**given))
    shared = written(tmp_path / "shared.key", b"User:alice " + NEW_KEY)
    gateways = written(tmp_path / "identity.key", NEW_KEY)
    with pytest.raises(CannotRun, match="User:alice has a key of identity-key-file, which signs for everyone"):
        read_senders(options(identity_key_file=gateways, principal_key_file=shared))
