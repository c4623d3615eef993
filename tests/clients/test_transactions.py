"""Consume-transform-produce loops stay exactly-once while coordinator and gateway are killed."""

from collections.abc import Iterator

import pytest

from tests.clients.programs.copier import STAGES, Copier
from tests.clients.programs.libraries import Library
from tests.clients.system import System

RECORDS = 3_000
"""More than a copier gets through during the test."""


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


def test_records_are_copied_exactly_once_through_kills_of_gateway_and_coordinator(
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
