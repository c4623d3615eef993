"""The command line understands the arguments, variables and files of every rendered container."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from streaming.cli.commands import gateway, run
from streaming.cli.commands.submitted import MASTER, words_of_run
from streaming.cli.console import key_values
from streaming.gateway.options import GatewayOptions, load_gateway_options
from streaming.job.options import JobOptions, load_options
from tests.chart.cases import APACHE, CASES, EXECUTORS, KUBEFLOW, STORE
from tests.chart.commands import SECRETS, RenderedCommand, rendered_commands
from tests.chart.helm import Values, merged
from tests.docs.console.lines import parsed

CA = "/etc/group-coordinator/kafka/ca.pem"

SECURED: Values = {
    "kafka": {"filesSecret": "kafka-files", "topicPrefix": "blue-"},
    "identityKeySecret": "identity",
    "job": {
        "options": {
            "kafka.security.protocol": "SASL_SSL",
            "librdkafka.ssl.ca.location": CA,
        },
        "secretOptions": CASES["job.secretOptions"].value,
    },
    "gateway": {
        "tlsSecret": "gateway-tls",
        "options": {
            "kafka.security.protocol": "SASL_SSL",
            "kafka.ssl.ca.location": CA,
        },
        "secretOptions": CASES["gateway.secretOptions"].value,
    },
}


def is_job(command: RenderedCommand) -> bool:
    """Whether a command is that of a job, which an operator starts with another program."""
    return command.main_file is not None or command.arguments[0] == "run"


def job_options(command: RenderedCommand) -> JobOptions:
    """The options of a job whose files are in place."""
    words = command.arguments
    if command.main_file is not None:
        words = words_of_run({MASTER: "k8s://https://kubernetes.default.svc", **command.spark_conf}, words)
    context = parsed(words)
    assert context.info_name == "run"
    flags = {name: context.params[name] for name in run.JOB_FLAGS} | key_values(context.params["settings"], "--set")
    return load_options(flags, command.environment, context.params["config"])


def gateway_options(command: RenderedCommand) -> GatewayOptions:
    """The options of a gateway whose files are in place."""
    context = parsed(command.arguments)
    assert context.info_name == "gateway"
    flags = {name: context.params[name] for name in gateway.FLAGS} | key_values(context.params["settings"], "--set")
    return load_gateway_options(flags, command.environment, context.params["config"])


def options_of(
    values: Values, folder: Path, secrets: Mapping[str, Mapping[str, str]] = SECRETS
) -> tuple[list[JobOptions], list[GatewayOptions]]:
    """The options of all jobs and of all gateways of a release."""
    commands = [each.below(folder / str(number)) for number, each in enumerate(rendered_commands(values, secrets))]
    jobs = [job_options(each) for each in commands if is_job(each)]
    gateways = [gateway_options(each) for each in commands if not is_job(each)]
    return jobs, gateways


@pytest.mark.parametrize("path", CASES)
def test_the_options_of_each_case_exist(path: str, tmp_path: Path) -> None:
    values = CASES[path].values(path)
    jobs, gateways = options_of(values, tmp_path)
    # Of a Deployment all replicas have one command, of a SparkApplication each has one.
    assert len(jobs) == (2 if "SparkApplication" in values.get("job", {}).get("kind", "") else 1)
    assert len(gateways) == (path != "gateway.enabled")


@pytest.mark.parametrize("kind", [{}, EXECUTORS, KUBEFLOW, APACHE], ids=["local", "executors", "Kubeflow", "Apache"])
def test_every_job_stands_by_and_serves_the_port_that_is_probed(kind: Values, tmp_path: Path) -> None:
    for job in options_of(kind, tmp_path)[0]:
        assert job.standby
        assert (job.metrics_host, job.metrics_port) == ("0.0.0.0", 9404)
        assert job.is_local == (kind == {})


def test_executors_are_started_from_the_drivers_pod(tmp_path: Path) -> None:
    (job,), _ = options_of(EXECUTORS, tmp_path)
    assert job.master == "k8s://https://kubernetes.default.svc"
    assert job.spark["driver.host"] == "10.0.0.7"
    assert Path(job.spark["kubernetes.executor.podTemplateFile"]).is_file()


@pytest.mark.parametrize("kind", [KUBEFLOW, APACHE], ids=["Kubeflow", "Apache"])
def test_sparks_settings_of_an_operators_job_are_there_before_its_driver_starts(kind: Values, tmp_path: Path) -> None:
    values = merged(merged(kind, STORE), {"checkpoint": {"s3": {"region": "eu"}}, "job": {"options": {"spark.a.b": 1}}})
    for command in [each for each in rendered_commands(values) if is_job(each)]:
        text = command.files["/etc/group-coordinator/job/job.toml"]
        assert "spark." not in text
        assert "driver-memory" not in text
        assert command.spark_conf["spark.hadoop.fs.s3a.endpoint.region"] == "eu"
        assert job_options(command.below(tmp_path)).spark["a.b"] == "1"


def test_secrets_and_their_files_reach_the_options(tmp_path: Path) -> None:
    (job,), (gateway_,) = options_of(SECURED, tmp_path)
    assert job.librdkafka_config["sasl.password"] == "x"
    assert job.topic_prefix == gateway_.topic_prefix == "blue-"
    assert gateway_.kafka["sasl.password"] == "a-password"
    for path in (
        *(job.librdkafka["ssl.ca.location"], job.identity_key_file, gateway_.identity_key_file),
        *(gateway_.tls_cert, gateway_.tls_key, gateway_.kafka["ssl.ca.location"]),
    ):
        assert path is not None
        assert Path(path).is_file()


def test_a_checkpoint_is_in_the_store_or_on_the_volume(tmp_path: Path) -> None:
    (on_volume,) = [each for each in rendered_commands({}) if each.container == "job"]
    assert "/checkpoint" in on_volume.folders
    assert job_options(on_volume.below(tmp_path)).checkpoint == f"{tmp_path}/checkpoint/coordinator"
    values = merged(STORE, {"checkpoint": {"s3": {"credentialsSecret": "store", "endpoint": "http://minio:9000"}}})
    (in_store,) = [each for each in rendered_commands(values) if each.container == "job"]
    assert in_store.folders == ["/tmp"]
    assert in_store.environment == SECRETS["store"]
    options = job_options(in_store.below(tmp_path / "store"))
    assert options.checkpoint == "s3a://bucket/coordinator"
    assert options.spark == {"hadoop.fs.s3a.endpoint": "http://minio:9000"}


def test_an_option_that_does_not_exist_is_found(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="no-such-option"):
        options_of({"job": {"options": {"no-such-option": 1}}}, tmp_path)
