from collections.abc import Iterator

import pytest

from .kafka_classes import KafkaClasses


@pytest.fixture(scope="package")
def kafka() -> Iterator[KafkaClasses]:
    """Kafka's own classes, in one JVM for all tests here."""
    with KafkaClasses() as classes:
        yield classes
