"""Runs the demo."""

import time
from pathlib import Path

from streaming.client.librdkafka import LibrdkafkaConfig
from streaming.contract.topics import TopicNames
from streaming.drills.console_output import ConsoleOutput
from streaming.drills.demo.acts import ACTS, FIRST_TITLE, FIRST_WHAT, GROUP, WAIT_SECONDS, Demo
from streaming.drills.demo.consumer_reports import Check
from streaming.drills.own_coordinator import OwnCoordinator, own_folder
from streaming.drills.recording import Recording
from streaming.embedded.jars import resolve_jars
from streaming.explain.page.of_group import page_of_group


def run_demo(output: ConsoleOutput, page: Path | None = None) -> list[Check]:
    """Run the whole demo, and leave neither processes nor other files behind; returns what was checked.

    page: the file for the story of the demo's group, as a page.

    Raises:
        DrillFailed, NotReported, CoordinatorError: an act does not finish.
        BrokerStartError, JarResolutionError, MissingPrerequisite, CannotRun: see the broker and the gateway.
    """
    checks: list[Check] = []
    began, recording = time.monotonic(), Recording(output.step)
    output.begin(f"1. {FIRST_TITLE}", FIRST_WHAT)
    resolve_jars(output.line)
    with (
        own_folder("demo") as folder,
        OwnCoordinator(folder, (), recording.step) as coordinator,
        Demo(recording, output, coordinator) as demo,
    ):
        for number, act in enumerate(ACTS, 2):
            output.begin(f"{number}. {act.title}", act.what)
            for check in act.play(demo):
                checks.append(check)
                output.check(check.passed, f"{check.name}: {check.detail}")
        if page is not None:
            page.parent.mkdir(parents=True, exist_ok=True)
            config: LibrdkafkaConfig = {"bootstrap.servers": coordinator.bootstrap_servers}
            page.write_text(page_of_group(config, TopicNames().journal, GROUP, WAIT_SECONDS), "utf-8")
    output.line("")
    output.end("passed" if all(check.passed for check in checks) else "FAILED", time.monotonic() - began)
    if page is not None:
        output.line(f"The story of group {GROUP}, for a browser: {page.absolute().as_uri()}")
    return checks
