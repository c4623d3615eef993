"""What the image is, and that its containers find all that they need in it."""

import json
import subprocess
import tomllib
from collections.abc import Iterator

import pytest

from coordinator_logic.messages import GroupToFetch, OffsetCommitRequest, PartitionToCommit, TopicToCommit
from streaming.client import CoordinatorClient
from streaming.embedded.broker import EmbeddedBroker
from tests.docs.markdown import ROOT
from tests.image.compose import services
from tests.image.engine import IMAGE, LIMIT_SECONDS, Container, Engine
from tests.image.test_compose import await_ready
from tests.object_store.server import S3Server

pytestmark = [pytest.mark.jvm, pytest.mark.timeout(1200)]

PREFIX = "image-"
LARGEST_BYTES = 1_700_000_000


def test_labels_say_what_is_in_the_image(engine: Engine) -> None:
    (image,) = json.loads(engine("image", "inspect", IMAGE))
    labels = {key.removeprefix("org.opencontainers.image."): text for key, text in image["Config"]["Labels"].items()}
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert (labels["version"], labels["licenses"], labels["title"]) == (version, "Apache-2.0", "group-coordinator")
    assert len(labels["revision"].partition("-")[0]) == 40
    assert labels["source"]


def test_the_image_is_no_larger_than_it_has_been(engine: Engine) -> None:
    (image,) = json.loads(engine("image", "inspect", IMAGE))
    assert image["Size"] < LARGEST_BYTES


def test_broker_job_and_gateway_start_without_a_network() -> None:
    tried = subprocess.run(["deploy/image/try.sh", IMAGE], cwd=ROOT, capture_output=True, text=True)
    assert tried.returncode == 0, tried.stderr
    assert "s, without a network" in tried.stdout


@pytest.fixture
def job(engine: Engine, broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    """A job without a volume, whose checkpoint is in an object store."""
    with S3Server(tmp_path_factory.mktemp("s3")) as s3:
        s3.start()
        s3.bucket("checkpoints")
        service = services()["coordinator"] | {
            "command": ["run", *(f"--set={key}={value}" for key, value in s3.options.items())],
            "environment": {
                "GROUP_COORDINATOR_BOOTSTRAP_SERVERS": broker.bootstrap_servers,
                "GROUP_COORDINATOR_CHECKPOINT": "s3a://checkpoints/coordinator",
                "GROUP_COORDINATOR_TOPIC_PREFIX": PREFIX,
                "GROUP_COORDINATOR_METRICS_PORT": "0",
            },
            "volumes": [],
        }
        with Container(engine, service) as container:
            container.start()
            await_ready(container)
            yield container


def test_a_checkpoint_in_an_object_store_needs_no_download_and_outlives_the_container(
    job: Container, broker: EmbeddedBroker
) -> None:
    with CoordinatorClient(
        broker.bootstrap_servers, topic_prefix=PREFIX, request_timeout_ms=round(LIMIT_SECONDS * 1000)
    ) as client:
        commit = OffsetCommitRequest("billing", [TopicToCommit("orders", [PartitionToCommit(0, 7)])])
        assert client.offset_commit(commit).topics[0].partitions[0].error_code == 0
        assert not any("Jars" in line for line in job.output)
        job.kill()
        job.start()
        (group,) = client.offset_fetch([GroupToFetch("billing")]).groups
        assert [(topic.name, topic.partitions[0].committed_offset) for topic in group.topics] == [("orders", 7)]
