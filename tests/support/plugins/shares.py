"""Gives all files that share something expensive to one worker, with ``--dist loadfile``, and ends it after them.

A session's fixture lives in each worker that needs it, and a package's ends when a worker goes on with another package.
Without this, the coordinator would run in every worker until the last test, and a quarter of its processor time would
be that of an idle process.
"""

from collections.abc import Generator
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

SHARED = {
    "the young coordinator": (
        "tests/cli/history/test_sql.py",
        "tests/docs/console/test_running_lines.py",
        "tests/docs/test_notebooks.py",
        "tests/explain/tables/test_tables.py",
    ),
    "the coordinator": (
        "tests/cli/history/test_publishing.py",
        "tests/cli/every_command/test_folders.py",
        "tests/cli/every_command/test_pipes.py",
        "tests/cli/history/test_replay.py",
        "tests/cli/history/test_time_travel.py",
        "tests/cli/hostile_texts/test_commands.py",
        "tests/cli/test_commands.py",
        "tests/cli/test_completion.py",
        "tests/cli/test_explain.py",
        "tests/cli/test_offset_resets.py",
        "tests/client/consumer/test_group.py",
        "tests/client/consumer/test_offsets.py",
        "tests/client/consumer/test_reading.py",
        "tests/client/consumer/test_topics.py",
        "tests/client/membership/test_group_member.py",
        "tests/client/test_coordinator_client.py",
        "tests/deploy/test_alerts.py",
        "tests/docs/",
        "tests/explain/live/test_readers.py",
        "tests/explain/ui/test_command.py",
        "tests/gateway/groups/first_contact/test_moving_in.py",
        "tests/gateway/groups/test_group_apis.py",
        "tests/gateway/transactions/test_transactions.py",
        "tests/gateway/transactions/test_transactions_v2.py",
        "tests/job/monitoring/test_metrics.py",
        "tests/job/rows/test_transactional_requests.py",
        "tests/job/test_bad_input.py",
        "tests/job/test_query.py",
    ),
    "a coordinator and a gateway with clients": ("tests/clients/",),
    "a broker with an authorizer": (
        "tests/gateway/security/test_authorization.py",
        "tests/gateway/transactions/test_foreign_callers.py",
        "tests/gateway/groups/test_fatal_producer_error.py",
    ),
    "Kafka's assignors": ("tests/oracle/assignors/",),
}
"""By what they share: files, and the beginnings of their paths. The first that fits counts."""

ENDED_AFTER_ITS_FILES = {
    "coordinator": "the coordinator",
    "young_coordinator": "the young coordinator",
    "guarded": "a broker with an authorizer",
}
"""Fixtures of a session, and the files after which they end. One that is needed again starts again."""


def unit_of(nodeid: str) -> str:
    """What a test's file shares, or the file alone: the unit of work that one worker gets."""
    file = nodeid.partition("::")[0]
    return next((what for what, files in SHARED.items() if file.startswith(files)), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """Replace the scheduler of whole files."""
    return _LoadSharesScheduling(config, log) if config.getvalue("dist") == "loadfile" else None


class _LoadSharesScheduling(LoadFileScheduling):  # type: ignore[misc]  # xdist ships no types
    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


def pytest_configure(config: pytest.Config) -> None:
    """End fixtures in each process that runs tests."""
    config.pluginmanager.register(_EndsWhatIsShared())


class _EndsWhatIsShared:
    """Ends the fixtures of ``ENDED_AFTER_ITS_FILES``."""

    def __init__(self) -> None:
        self._running: dict[str, tuple[pytest.FixtureDef[Any], pytest.FixtureRequest]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        made = yield
        if fixturedef.scope == "session" and fixturedef.argname in ENDED_AFTER_ITS_FILES:
            self._running[fixturedef.argname] = fixturedef, request
        return made

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, nextitem: pytest.Item | None) -> Generator[None, object, object]:
        done = yield
        following = unit_of(nextitem.nodeid) if nextitem else None
        for name in [name for name in self._running if ENDED_AFTER_ITS_FILES[name] != following]:
            fixturedef, request = self._running.pop(name)
            fixturedef.finish(request)  # type: ignore[arg-type]  # pytest gives the request of a fixture its base's type
        return done
