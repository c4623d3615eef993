"""Due times: when a batch must run so that Spark calls a group, although no request comes.

Spark calls the groups whose timeout has passed in every batch, and makes a batch only when there is something to read.
So the Python workers report with each batch when the groups that it has called are due, and the driver sees to it that
there is something to read then (:mod:`streaming.job.wake_events`).

A report must stay small however many groups a batch has. So due times are rounded up to a grid that is coarser the
later they are: a year has some 6,000 of them.
"""

FINEST_MS = 10
STEPS = 256
"""A due time is late by at most :data:`FINEST_MS`, or by this part of the time until then."""


def due_time(timeout: int, batch_time: int) -> int:
    """The first batch time (ms since the epoch) that is sure to call a group with this timeout, rounded up.

    Spark calls a group in a batch whose time is later than the group's timeout. ``batch_time`` is the time of the batch
    that sets the timeout.
    """
    due = timeout + 1
    step: int = FINEST_MS << (max(0, due - batch_time) // (2 * STEPS * FINEST_MS)).bit_length()
    return -(-due // step) * step
