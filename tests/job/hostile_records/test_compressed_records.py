"""Records that are small in the topic and large in the heap, many in one batch."""

from collections.abc import Callable

import pytest

from streaming.job.options import load_options
from streaming.job.topics.creation import ensure_topics
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.kafka_io import append, reading
from tests.support.request_events import commit, dumped

RECORDS, IN_A_GO = 50, 5
ZEROS = bytes(30_000_000)


@pytest.mark.long
def test_a_job_with_the_documented_heap_reads_a_batch_of_many_compressed_records(
    new_coordinator: Callable[..., CoordinatorProcess],
) -> None:
    """They have 1.5 MB in the topic and 1.5 GB in memory. A job with the default heap of 1 GiB ends."""
    coordinator = new_coordinator({"driver-memory": "2g"})
    options = load_options(coordinator.options, {})
    ensure_topics(options.librdkafka_config, options.topics, options.layout)
    servers, topics, bystander = coordinator.bootstrap_servers, coordinator.topics, commit("bystander", 1)
    for _ in range(RECORDS // IN_A_GO):
        # A few at a time, since the producer keeps them uncompressed.
        records = [(b"zeros", ZEROS)] * IN_A_GO
        append(servers, topics.requests, *records, compression_type="gzip", message_max_bytes=40_000_000)
    append(servers, topics.requests, (b"bystander", dumped(bystander)))
    coordinator.start()
    with reading(servers, topics.responses) as responses:
        wanted = bystander["correlationId"].encode()
        answer = responses.first(lambda record: record.key == wanted, "the answer")
    assert answer.value["errorCode"] == 0
