"""Exits with 0 if the service of this container is live, else with 1 and the reason: the image's health check.

It asks the ports of the job and of the gateway. One of them must answer, and each that answers must be live.
"""

import os
import sys
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, build_opener

PREFIXES = ("GROUP_COORDINATOR_", "GROUP_COORDINATOR_GATEWAY_")
LIMIT_SECONDS = 4
EVERY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104


def problem(prefix: str) -> str | None:
    """Why the service whose options have this prefix is not live; None if it is. Raises URLError if it is not there."""
    host = os.environ.get(f"{prefix}METRICS_HOST", "127.0.0.1")
    page = f"http://{'127.0.0.1' if host in EVERY_ADDRESS else host}:{os.environ[f'{prefix}METRICS_PORT']}/health/live"
    try:
        # A proxy for other hosts has nothing to do with this one.
        build_opener(ProxyHandler({})).open(page, timeout=LIMIT_SECONDS).close()
    except HTTPError as answer:
        return f"{page}: {answer.status} {answer.read().decode(errors='replace')}"
    return None


def main() -> str | None:
    """The first problem; None if there is none."""
    problems, absent = [], []
    for prefix in PREFIXES:
        try:
            problems.append(problem(prefix))
        except (KeyError, OSError) as failure:
            absent.append(str(failure.reason if isinstance(failure, URLError) else failure))
    if not problems:
        return f"neither the job nor the gateway answers: {'; '.join(absent)}"
    return next(filter(None, problems), None)


if __name__ == "__main__":
    sys.exit(main())
