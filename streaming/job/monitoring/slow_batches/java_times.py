"""The time that Java's garbage collectors and compilers have taken, from its management beans."""

from typing import Any

from pyspark.sql import SparkSession

from streaming.job.monitoring.slow_batches.usage import Resource
from streaming.job.spark_internals.java_objects import java_virtual_machine


class JavaTimes:
    """Reads the beans of the driver's JVM, with a call for each. On a cluster, executors have JVMs of their own.

    The beans' classes are not exported by their modules, so their methods are called through the interfaces.
    """

    def __init__(self, spark: SparkSession) -> None:
        jvm = java_virtual_machine(spark)
        factory = jvm.java.lang.management.ManagementFactory
        named = jvm.java.lang.Class.forName
        self._no_arguments: Any = jvm.java.lang.reflect.Array.newInstance(named("java.lang.Object"), 0)

        def method(interface: str, name: str) -> Any:
            no_types = jvm.java.lang.reflect.Array.newInstance(named("java.lang.Class"), 0)
            return named(f"java.lang.management.{interface}").getMethod(name, no_types)

        self._collection_time = method("GarbageCollectorMXBean", "getCollectionTime")
        self._compilation_time = method("CompilationMXBean", "getTotalCompilationTime")
        self._collectors = list(factory.getGarbageCollectorMXBeans())
        self._compiler = factory.getCompilationMXBean()

    def used(self) -> dict[Resource, float]:
        """What they have taken until now, in seconds."""
        collecting = sum(self._collection_time.invoke(each, self._no_arguments) for each in self._collectors)
        compiling = self._compilation_time.invoke(self._compiler, self._no_arguments)
        return {"collecting": collecting / 1000, "compiling": compiling / 1000}
