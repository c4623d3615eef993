"""Consume-transform-produce loops stay exactly-once while coordinator and gateway are killed."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.clients.programs.copier import STAGES, Copier, Library
from tests.clients.programs.libraries import CLASSIC, CONSUMER
from tests.clients.system import System

RECORDS = 3_000
"""More than a copier gets through during the test."""

TRANSACTIONS = 5
"""The fewest transactions that show whether each of them raises the producer's epoch."""

NewCopier = Callable[[System, Library, str], Copier]


@pytest.fixture
def new_copier(tmp_path: Path) -> Iterator[NewCopier]:
    """Starts a copier of a library in a group of a protocol, through a system's gateway; kills it after the test."""
    with ExitStack() as stack:

        def start(system: System, library: Library, protocol: str) -> Copier:
            copier = Copier(system, library, RECORDS, protocol, tmp_path)
            stack.callback(copier.kill)
            return copier

        yield start


def check_exactly_once_through_kills(system: System, copiers: list[Copier], staged: list[Copier]) -> None:
    """Kill the gateway at each stage of each of the ``staged`` copiers, then the coordinator, then all copiers."""

    def await_progress() -> None:
        for copier in copiers:
            copier.await_progress()

    await_progress()
    for halted in staged:
        for stage in STAGES:
            halted.await_stage(stage)
            system.gateway.kill()
            system.gateway.start()
            await_progress()
    system.coordinator.kill()
    system.coordinator.start()
    await_progress()
    for copier in copiers:
        copier.kill()
        copier.check_exactly_once()


def uses_transactions_v2(copier: Copier) -> bool:
    """Whether each of several transactions has raised the producer's epoch."""
    before = copier.producer_epoch()
    # Twice as many, since what a copier reports is read some transactions after the broker has committed them.
    copier.await_progress(2 * TRANSACTIONS)
    return copier.producer_epoch() >= before + TRANSACTIONS


@pytest.mark.parametrize(
    "protocols", [(CONSUMER,), pytest.param((CLASSIC, CONSUMER), marks=pytest.mark.long)], ids="+".join
)
def test_records_are_copied_exactly_once_through_kills_of_gateway_and_coordinator(
    system: System, new_copier: NewCopier, protocols: tuple[str, ...]
) -> None:
    libraries = (Library.JAVA, Library.LIBRDKAFKA)
    copiers = [new_copier(system, library, protocol) for protocol in protocols for library in libraries]
    copiers_v2 = [copier for copier in copiers if uses_transactions_v2(copier)]
    assert copiers_v2 == copiers[::2], "the Java client uses transactions V2, librdkafka does not know them"
    # Kafka's own copier, the first one, reports no stages.
    check_exactly_once_through_kills(system, copiers, staged=copiers[1:])


@pytest.mark.long
def test_franz_go_copies_records_exactly_once(system: System, new_copier: NewCopier) -> None:
    copiers = [new_copier(system, Library.FRANZ_GO, protocol) for protocol in (CLASSIC, CONSUMER)]
    assert all(map(uses_transactions_v2, copiers))
    check_exactly_once_through_kills(system, copiers, staged=copiers)


@pytest.mark.long
def test_the_java_client_copies_records_exactly_once_with_transactions_v1(
    system: System, new_copier: NewCopier
) -> None:
    with system.beside({"transactions-v2": "false"}) as beside:
        copiers = [new_copier(beside, Library.JAVA, protocol) for protocol in (CLASSIC, CONSUMER)]
        assert not any(map(uses_transactions_v2, copiers))
        check_exactly_once_through_kills(beside, copiers, staged=copiers[1:])
