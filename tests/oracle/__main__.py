"""``python -m tests.oracle --scripts 2000 --seed 1``: random scripts against a real broker."""

import argparse
import asyncio
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from coordinator_logic.config import CoordinatorConfig
from tests.oracle.campaign import AT_ONCE, Campaign, Tally
from tests.oracle.conversation import conversation
from tests.oracle.generate import random_scripts
from tests.oracle.judge import CONFIG, SMALL_GROUPS, judge
from tests.oracle.script import Script, read
from tests.oracle.shrink import shrink

SHRUNK_PER_KIND = 2
SMALL_GROUPS_EVERY = 5


def main() -> int:
    """Play the scripts; 1 if a difference was found or a script could not be decided, else 0."""
    arguments = _arguments()
    console = Console()
    if arguments.script is not None:
        script = read(arguments.script.read_text())
        return _play(console, {"small" if arguments.small_groups else "large": [script]}, arguments)
    with console.status("making up scripts"):
        scripts = random_scripts(arguments.scripts, seed_number=arguments.seed, requests=arguments.requests)
    small = scripts[::SMALL_GROUPS_EVERY]
    large = [script for number, script in enumerate(scripts) if number % SMALL_GROUPS_EVERY]
    return _play(console, {"large": large, "small": small}, arguments)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
    parser.add_argument("--scripts", type=int, default=200, help="how many")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same scripts")
    parser.add_argument("--requests", type=int, default=30, help="of each script")
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help="how many scripts are played at a time")
    parser.add_argument("--script", type=Path, help="play the script of this file instead")
    parser.add_argument("--small-groups", action="store_true", help="with --script: in a group with room for two")
    return parser.parse_args()


def _play(console: Console, scripts: dict[str, list[Script]], arguments: argparse.Namespace) -> int:
    configurations = {"large": CONFIG, "small": SMALL_GROUPS}
    failed = False
    for name, chosen in scripts.items():
        config = configurations[name]
        started = time.monotonic()
        tally = _campaign(console, f"group.max.size={config.group_max_size}", chosen, config, arguments.at_once)
        _report(console, tally, time.monotonic() - started)
        failed = failed or bool(tally.differences or tally.undecided)
    return int(failed)


def _campaign(console: Console, title: str, scripts: list[Script], config: CoordinatorConfig, at_once: int) -> Tally:
    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with judge(config) as broker, Progress(*columns, console=console) as progress:
        bar = progress.add_task(title, total=len(scripts))

        async def run() -> Tally:
            campaign = Campaign(broker.bootstrap_servers, config, at_once=at_once)
            try:
                tally = await campaign.judge(scripts, lambda: progress.advance(bar))
                await _show_differences(console, campaign, tally)
            finally:
                campaign.close()
            return tally

        return asyncio.run(run())


async def _show_differences(console: Console, campaign: Campaign, tally: Tally) -> None:
    for kind in tally.kinds:
        examples = [played for played in tally.differences if played.difference == kind]
        for played in sorted(examples, key=lambda played: played.requests)[:SHRUNK_PER_KIND]:
            smallest = await shrink(played, campaign)
            console.print(conversation(smallest), markup=False, highlight=False, soft_wrap=True)


def _report(console: Console, tally: Tally, seconds: float) -> None:
    lines = [
        f"{len(tally.runs)} scripts, {tally.requests} requests, {tally.compared} answers compared, {seconds:.0f} s",
        f"{tally.repeated} runs repeated because of doubt or to see a difference again, "
        f"{tally.reordered} steps agreed with the members in another order",
        f"{len(tally.undecided)} scripts undecided, {len(tally.not_seen_again)} differences not seen again",
        f"{len(tally.differences)} differences {dict(tally.kinds) or ''}",
    ]
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)
    for played in (*tally.undecided, *tally.not_seen_again):
        console.print(conversation(played), markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
