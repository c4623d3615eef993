"""Consume-transform-produce loops stay exactly-once while coordinator and gateway are killed."""

from collections.abc import Iterator

import pytest

from tests.clients.programs.copier import STAGES, Copier
from tests.clients.programs.libraries import CLASSIC, CONSUMER, Library
from tests.clients.system import System

RECORDS = 3_000
"""More than a copier gets through during the test."""

KINDS = (
    (Library.JAVA, CLASSIC),
    (Library.LIBRDKAFKA, CLASSIC),
    (Library.JAVA, CONSUMER),
    (Library.LIBRDKAFKA, CONSUMER),
)


@pytest.fixture
def copiers(system: System) -> Iterator[list[Copier]]:
    started: list[Copier] = []
    try:
        for library, protocol in KINDS:
            started.append(Copier(system, library, RECORDS, protocol))
        yield started
    finally:
        for copier in started:
            copier.kill()


def test_records_are_copied_exactly_once_through_kills_of_gateway_and_coordinator(
    system: System, copiers: list[Copier]
) -> None:
    def await_progress() -> None:
        for copier in copiers:
            copier.await_progress()

    await_progress()
    for staged in copiers[1:]:
        for stage in STAGES:
            staged.await_stage(stage)
            system.gateway.kill()
            system.gateway.start()
            await_progress()
    system.coordinator.kill()
    system.coordinator.start()
    await_progress()
    for copier in copiers:
        copier.kill()
        copier.check_exactly_once()
