"""Run random scripts against a real broker, e.g. python -m tests.oracle --scripts 2000 --seed 1."""

import argparse
import asyncio
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from coordinator_logic.config import CoordinatorConfig
from tests.oracle.campaign import AT_ONCE, Campaign, CampaignResult
from tests.oracle.reference_broker import CONFIG, SMALL_GROUPS, reference_broker
from tests.oracle.scripts.generate import random_scripts
from tests.oracle.scripts.script import Script, read
from tests.oracle.scripts.shrink import shrink
from tests.oracle.scripts.transcript import transcript

SHRUNK_PER_KIND = 2
SMALL_GROUPS_EVERY = 5


def main() -> int:
    """Run the scripts; return 1 if there is a difference or an inconclusive script, else 0."""
    arguments = _arguments()
    console = Console()
    if arguments.script is not None:
        script = read(arguments.script.read_text())
        return _run(console, {"small" if arguments.small_groups else "large": [script]}, arguments)
    with console.status("generating scripts"):
        scripts = random_scripts(arguments.scripts, seed_number=arguments.seed, requests=arguments.requests)
    small = scripts[::SMALL_GROUPS_EVERY]
    large = [script for number, script in enumerate(scripts) if number % SMALL_GROUPS_EVERY]
    return _run(console, {"large": large, "small": small}, arguments)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
    parser.add_argument("--scripts", type=int, default=200, help="the number of scripts")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same scripts")
    parser.add_argument("--requests", type=int, default=30, help="the number of requests of each script")
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help="the number of scripts that run concurrently")
    parser.add_argument("--script", type=Path, help="run the script in this file instead")
    parser.add_argument("--small-groups", action="store_true", help="with --script: use group.max.size=2")
    return parser.parse_args()


def _run(console: Console, scripts: dict[str, list[Script]], arguments: argparse.Namespace) -> int:
    configurations = {"large": CONFIG, "small": SMALL_GROUPS}
    failed = False
    for name, chosen in scripts.items():
        config = configurations[name]
        started = time.monotonic()
        result = _campaign(console, f"group.max.size={config.group_max_size}", chosen, config, arguments.at_once)
        _report(console, result, time.monotonic() - started)
        failed = failed or bool(result.differences or result.inconclusive)
    return int(failed)


def _campaign(
    console: Console, title: str, scripts: list[Script], config: CoordinatorConfig, at_once: int
) -> CampaignResult:
    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with reference_broker(config) as broker, Progress(*columns, console=console) as progress:
        bar = progress.add_task(title, total=len(scripts))

        async def run() -> CampaignResult:
            campaign = Campaign(broker.bootstrap_servers, config, at_once=at_once)
            try:
                result = await campaign.run(scripts, lambda: progress.advance(bar))
                await _show_differences(console, campaign, result)
            finally:
                campaign.close()
            return result

        return asyncio.run(run())


async def _show_differences(console: Console, campaign: Campaign, result: CampaignResult) -> None:
    for kind in result.kinds:
        examples = [run for run in result.differences if run.difference == kind]
        for run in sorted(examples, key=lambda run: run.requests)[:SHRUNK_PER_KIND]:
            smallest = await shrink(run, campaign)
            console.print(transcript(smallest), markup=False, highlight=False, soft_wrap=True)


def _report(console: Console, result: CampaignResult, seconds: float) -> None:
    lines = [
        f"{len(result.runs)} scripts, {result.requests} requests, "
        f"{result.compared} responses compared, {seconds:.0f} s",
        f"{result.repeated} runs repeated because they were inconclusive or had a difference, "
        f"{result.reordered} steps agreed with another order of members or timers",
        f"{len(result.inconclusive)} scripts inconclusive, {len(result.not_reproduced)} differences not reproduced",
        f"{len(result.differences)} differences {dict(result.kinds) or ''}",
    ]
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)
    for run in (*result.inconclusive, *result.not_reproduced):
        console.print(transcript(run), markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
