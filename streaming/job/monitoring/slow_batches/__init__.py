"""What a slow batch waited for: garbage collection, the compiler, other processes, the disk, the host, the brokers.

:mod:`.usage` and :mod:`.causes` decide, :mod:`.machine` and :mod:`.java_times` read, :mod:`.recorder` does it while a
query runs.
"""
