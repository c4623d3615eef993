"""When the query looks for requests: at once for those that somebody waits for, within a budget of CPU time.

:mod:`.collection` and :mod:`.credit` decide, :mod:`.arrivals` sees requests arrive, :mod:`.pace_thread` tells
Spark. The room may import Spark's internals and all below them; only the job's lifecycle imports it, and the
recorder of slow batches for the CPU time.
"""
