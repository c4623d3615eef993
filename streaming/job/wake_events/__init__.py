"""Wake events: records by which the driver makes Spark run a batch when a group is due and no request comes.

:mod:`.schedule` decides when one is needed, :mod:`.producer` appends it, :mod:`.wake_thread` follows the batches.
The room may import the monitoring's report of a batch and all below it; only the job's lifecycle imports it.
"""
