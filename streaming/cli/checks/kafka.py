"""The brokers, the coordinator's topics, and the brokers' clocks compared with this machine's."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, OffsetSpec

from streaming.cli.checks.finding import Finding, note, ok, problem, risk
from streaming.cli.console import err
from streaming.contract.output.broker_failures import brokers_failed
from streaming.contract.waits import KAFKA, announcing_waits, waiting_for
from streaming.job.options import JobOptions
from streaming.job.topics.inspection import TopicInspection, inspect_topics
from streaming.job.topics.partition_leaders import list_offsets, once_leaders_answer
from streaming.job.topics.rights import missing_job_rights

FRESH_MS = 10_000
"""A request that was appended within this time bounds how far a broker's clock can be behind."""

BROKERS, RIGHTS, TOPICS, CLOCKS = "brokers", "rights", "topics", "clocks"


@dataclass
class KafkaReport:
    """The findings about Kafka, and the partition count and the id of the request topic if they are known."""

    findings: list[Finding] = field(default_factory=list)
    request_partitions: int | None = None
    request_topic_id: str | None = None


def check_kafka(options: JobOptions, timeout_seconds: float) -> KafkaReport:
    """Check the brokers, the topics and the clocks. Nothing is created or written."""
    report = KafkaReport()
    errors: list[KafkaError] = []
    settings: dict[str, Any] = {"log_level": 0, **options.librdkafka_config, "error_cb": errors.append}
    admin = AdminClient(settings)
    try:
        with announcing_waits(err.line, options.bootstrap_servers), waiting_for(KAFKA, timeout_seconds):
            brokers = admin.list_topics(timeout=timeout_seconds).brokers.values()
        addresses = ", ".join(f"{broker.host}:{broker.port}" for broker in brokers)
        report.findings.append(ok(BROKERS, f"{len(brokers)} reachable: {addresses}"))
        missing_rights = missing_job_rights(admin, options.topics, timeout_seconds)
        report.findings += [problem(RIGHTS, line, "create the ACLs of the job's role") for line in missing_rights]
        if missing_rights:
            return report
        inspection = inspect_topics(admin, options.topics, options.layout)
        report.request_partitions = inspection.partitions.get(options.topics.requests)
        report.request_topic_id = inspection.topic_ids.get(options.topics.requests)
        report.findings += _check_topics(inspection)
        report.findings.append(_check_clocks(admin, options, report.request_partitions, timeout_seconds))
    except KafkaException as failure:
        admin.poll(0)
        detail = brokers_failed(options.bootstrap_servers, failure.args[0], errors)
        advice = "check the address, that the broker runs, and the kafka.* and librdkafka.* options"
        report.findings.append(problem(BROKERS, detail, advice))
    return report


def _check_topics(inspection: TopicInspection) -> Iterator[Finding]:
    if inspection.missing:
        yield note(
            TOPICS,
            f"missing: {', '.join(inspection.missing)}",
            "the first start of the job creates them; if it has run before, check --topic-prefix",
        )
    for found, lines in ((problem, inspection.problems), (risk, inspection.risks)):
        for line in lines:
            detail, _, remedy = line.partition(" (")
            yield found(TOPICS, detail, remedy.removesuffix(")") or "change the option or the topic")
    if not inspection.missing and not inspection.problems and not inspection.risks:
        yield ok(TOPICS, "all exist, with the settings that the job needs")


def _check_clocks(admin: AdminClient, options: JobOptions, partitions: int | None, timeout_seconds: float) -> Finding:
    """Compare this machine's clock with the append time of the newest request, which is a broker's clock.

    A broker whose clock is behind is visible only while requests arrive, because this check writes nothing.
    """
    later = "run this again while clients send requests"
    if partitions is None:
        return note(CLOCKS, "not known: there is no request topic yet", later)
    spec = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]
    newest = partial(list_offsets, admin, options.topics.requests, range(partitions), spec, timeout_seconds)
    appended_ms = max(found.timestamp for found in once_leaders_answer(newest, timeout_seconds).values())
    now_ms = time.time_ns() // 1_000_000
    if appended_ms < 0:
        return note(CLOCKS, f"not known: {options.topics.requests} is empty", later)
    if appended_ms - now_ms > options.protocol.expiry_allowance_ms:
        return problem(
            CLOCKS,
            f"a broker's clock is at least {appended_ms - now_ms} ms ahead of this machine's",
            "synchronize the clocks, for example with NTP",
        )
    if now_ms - appended_ms > FRESH_MS:
        age = f"the newest request is {(now_ms - appended_ms) / 1000:.0f} s old"
        return note(CLOCKS, f"not known: {age}, or a broker's clock is that far behind", later)
    return ok(CLOCKS, f"{max(0, now_ms - appended_ms)} ms between the newest request's append time and now")
