"""Gives all files that share something expensive to one worker, with ``--dist loadfile``.

A session's fixture lives in each worker that needs it, and a package's ends when a worker goes on with another package.
"""

from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

SHARED = {
    "a coordinator and a gateway with clients": ("tests/clients/",),
    "a broker with an authorizer": (
        "tests/gateway/security/test_authorization.py",
        "tests/gateway/transactions/test_foreign_callers.py",
        "tests/gateway/groups/test_fatal_producer_error.py",
    ),
    "Kafka's assignors": ("tests/oracle/assignors/",),
}
"""By what they share: files, and the beginnings of their paths."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """Replace the scheduler of whole files."""
    return _LoadSharesScheduling(config, log) if config.getvalue("dist") == "loadfile" else None


class _LoadSharesScheduling(LoadFileScheduling):  # type: ignore[misc]  # xdist ships no types
    def _split_scope(self, nodeid: str) -> str:
        """The files that share something are one unit of work."""
        file = super()._split_scope(nodeid)
        return next((what for what, files in SHARED.items() if file.startswith(files)), file)
