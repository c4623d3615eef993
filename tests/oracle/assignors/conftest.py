from collections.abc import Iterator

import py4j.java_gateway
import py4j.protocol
import pytest

from .kafka_classes import KafkaClasses


@pytest.fixture(scope="package")
def kafka() -> Iterator[KafkaClasses]:
    """The classes of kafka-clients, in one JVM for all tests of this package."""
    with KafkaClasses() as classes:
        yield classes


@pytest.fixture(autouse=True, scope="module")
def without_pyspark_in_py4j() -> Iterator[None]:
    """Restore py4j's own reading of answers, which pyspark replaces in a process that has had a Spark session.

    Pyspark's asks Spark's JVM about every Java exception, and fails when that JVM is gone.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(py4j.java_gateway, "get_return_value", py4j.protocol.get_return_value)
        yield
