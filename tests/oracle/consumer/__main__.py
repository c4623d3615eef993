"""Run random scripts against Kafka's group manager, e.g. python -m tests.oracle.consumer --scripts 2000 --seed 1."""

import argparse
import sys
import time
from collections import Counter

from tests.oracle.consumer.judge import Judge
from tests.oracle.consumer.lockstep import Difference, compare, shrink
from tests.oracle.consumer.scripts import play

MOST_SHOWN = 3


def main() -> int:
    """Run the scripts; return 1 if there is a difference, else 0."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.consumer", description=__doc__)
    parser.add_argument("--scripts", type=int, default=1_000, help="the number of scripts")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same scripts")
    parser.add_argument("--length", type=int, default=60, help="the number of commands of each script")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    arguments = parser.parse_args()
    started, answers, found, scripts = time.monotonic(), Counter[str](), [], 0
    with Judge() as judge:
        for seed in range(arguments.seed * 10**6, arguments.seed * 10**6 + arguments.scripts):
            if time.monotonic() - started > arguments.seconds:
                break
            scripts += 1
            played = play(seed, arguments.length)
            answers.update(f"{c['op']} {a['error']}" for c, a in zip(played.commands, played.answers, strict=True))
            difference = compare(judge, played)
            if difference is not None:
                found.append(seed)
                if len(found) <= MOST_SHOWN:
                    _show(seed, shrink(judge, difference))
    print(f"{scripts} scripts, {sum(answers.values())} commands, {time.monotonic() - started:.0f} s")
    print(f"answers: {dict(sorted(answers.items()))}")
    print(f"{len(found)} scripts differ {found[:20] or ''}")
    return int(bool(found))


def _show(seed: int, difference: Difference) -> None:
    print(f"--- script {seed}\n{difference.text()}\n")


if __name__ == "__main__":
    sys.exit(main())
