"""Loops that consume, transform and produce stay exactly once when coordinator and gateway are killed under them."""

from collections.abc import Iterator

import pytest

from tests.clients.copier import STAGES, Copier
from tests.clients.libraries import Library
from tests.clients.system import System

RECORDS = 3_000
"""More than are copied in a test's time."""


@pytest.fixture
def copiers(system: System) -> Iterator[dict[Library, Copier]]:
    started: dict[Library, Copier] = {}
    try:
        for library in (Library.JAVA, Library.LIBRDKAFKA):
            started[library] = Copier(system, library, RECORDS)
        yield started
    finally:
        for copier in started.values():
            copier.kill()


def test_everything_is_copied_once_through_kills_of_gateway_and_coordinator(
    system: System, copiers: dict[Library, Copier]
) -> None:
    def await_progress() -> None:
        for copier in copiers.values():
            copier.await_progress()

    await_progress()
    for stage in STAGES:
        copiers[Library.LIBRDKAFKA].await_stage(stage)
        system.gateway.kill()
        system.gateway.start()
        await_progress()
    system.coordinator.kill()
    system.coordinator.start()
    await_progress()
    for copier in copiers.values():
        copier.kill()
        copier.check_exactly_once()
