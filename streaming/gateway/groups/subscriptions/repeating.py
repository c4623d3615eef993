"""Work in the background that goes on whatever fails."""

import logging
from collections.abc import Awaitable, Callable

from streaming.client.errors import CoordinatorNotAvailable

log = logging.getLogger(__name__)


async def repeat(wait: Callable[[], Awaitable[None]], work: Callable[[], Awaitable[None]], problem: str) -> None:
    """Work whenever a wait has ended, until cancelled.

    ``problem`` says in the log what is the matter while brokers do not answer, once for each failure.
    """
    last_failure = ""
    while True:
        await wait()
        try:
            await work()
            last_failure = ""
        except CoordinatorNotAvailable as failure:
            if str(failure) != last_failure:
                last_failure = str(failure)
                log.warning("%s: %s", problem, last_failure)
        except Exception:
            # If this task ended, the work would not be done until the gateway restarts.
            log.exception("%s", problem)
