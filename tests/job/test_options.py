"""Options from three sources: their precedence, and errors that name the source."""

from pathlib import Path

import pytest

from streaming.contract.errors import BadOptions
from streaming.embedded.jars import Jars
from streaming.job.options import JobOptions, load_options
from streaming.job.profiles import PROFILES
from streaming.job.session import spark_settings

REQUIRED = {"bootstrap_servers": "kafka:9092", "checkpoint": "/tmp/checkpoint"}


def problems(flags: dict[str, object], environ: dict[str, str] | None = None, file: Path | None = None) -> list[str]:
    with pytest.raises(BadOptions) as rejected:
        load_options(flags, environ or {}, file)
    return str(rejected.value).splitlines()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "options.toml"


def test_only_two_options_are_required() -> None:
    options = load_options(REQUIRED, {})
    assert isinstance(options, JobOptions)
    assert (options.bootstrap_servers, options.checkpoint) == ("kafka:9092", "/tmp/checkpoint")
    assert options.protocol.group_initial_rebalance_delay_ms == 3_000


def test_the_profile_sets_the_batch_interval_unless_it_is_given() -> None:
    def interval(**flags: object) -> int:
        return load_options({**REQUIRED, **flags}, {}).batch_interval_ms

    assert interval(profile="latency") == 0 < interval() < interval(profile="object-store")
    assert interval() == interval(profile="balanced")
    assert interval(profile="object-store", trigger_interval_ms=7) == 7
    assert problems({**REQUIRED, "profile": "quick"})[0].startswith("profile (given as --profile): ")


@pytest.mark.jvm
def test_spark_settings_of_the_user_override_those_of_the_profile() -> None:
    key = "sql.streaming.stateStore.maintenanceInterval"
    jars = Jars([], [])
    settings = spark_settings(load_options({**REQUIRED, "profile": "object-store"}, {}), jars)
    assert settings[f"spark.{key}"] == PROFILES["object-store"].spark[f"spark.{key}"]
    chosen = load_options({**REQUIRED, "profile": "object-store", f"spark.{key}": "9s"}, {})
    assert spark_settings(chosen, jars)[f"spark.{key}"] == "9s"


@pytest.mark.parametrize(
    ("master", "local"),
    [("local", True), ("local[*]", True), ("local-cluster[1,1,768]", False), ("spark://host:7077", False)],
)
def test_only_a_local_master_runs_in_one_process(master: str, local: bool) -> None:
    assert load_options({**REQUIRED, "master": master}, {}).is_local == local


def test_flags_take_precedence_over_the_environment_and_it_over_the_file(file: Path) -> None:
    file.write_text("trigger-interval-ms = 1\nmetrics-port = 1\ntopic-prefix = 'file-'\n")
    environ = {"GROUP_COORDINATOR_TRIGGER_INTERVAL_MS": "2", "GROUP_COORDINATOR_METRICS_PORT": "2"}
    options = load_options({**REQUIRED, "trigger_interval_ms": 3, "metrics_port": None}, environ, file)
    assert (options.trigger_interval_ms, options.metrics_port, options.topic_prefix) == (3, 2, "file-")


def test_all_options_can_come_from_the_file(file: Path) -> None:
    file.write_text(
        """
        bootstrap-servers = "kafka:9092"
        checkpoint = "s3a://bucket/checkpoint"
        group.max.size = 50
        kafka.security.protocol = "SSL"
        [group.min.session]
        timeout.ms = 1000
        [spark]
        executor.memory = "2g"
        speculation = false
        """
    )
    options = load_options({}, {}, file)
    assert options.protocol.group_max_size == 50
    assert options.protocol.group_min_session_timeout_ms == 1_000
    assert options.kafka == {"security.protocol": "SSL"}
    assert options.spark == {"executor.memory": "2g", "speculation": "false"}


def test_protocol_and_kafka_options_can_come_from_the_environment() -> None:
    environ = {
        "GROUP_COORDINATOR_GROUP_MAX_SIZE": "7",
        "GROUP_COORDINATOR_KAFKA_SASL_JAAS_CONFIG": "x",
        "GROUP_COORDINATOR_SERVICE_HOST": "made by Kubernetes",
        "GROUP_COORDINATOR_CACHE": "/another/module's",
    }
    options = load_options(REQUIRED, environ)
    assert options.protocol.group_max_size == 7
    assert options.kafka == {"sasl.jaas.config": "x"}


def test_each_problem_names_the_option_and_its_source(file: Path) -> None:
    file.write_text("trigger-interval-ms = 'soon'\n")
    environ = {"GROUP_COORDINATOR_METRICS_PORT": "tcp://10.0.0.1:9000"}
    flags: dict[str, object] = {"checkpoint": "/c", "state_partitions": 0, "group.max.size": "many"}
    found = problems(flags, environ, file)
    assert [problem.split(":")[0] for problem in found] == [
        f"trigger-interval-ms (given in {file})",
        "metrics-port (given as GROUP_COORDINATOR_METRICS_PORT)",
        "state-partitions (given as --state-partitions)",
        "group.max.size (given with --set)",
        "bootstrap-servers is missing",
    ]
    assert found[2].endswith(": 0 is not a whole number, 1 or more")


def test_an_unknown_option_is_rejected(file: Path) -> None:
    file.write_text("trigger-intervall-ms = 5\n")
    assert problems(dict(REQUIRED), {}, file) == [f"trigger-intervall-ms (given in {file}): there is no such option"]
    for key in ("requests.partitions", "late.answer.ms"):
        assert problems({**REQUIRED, key: "5"})[0].endswith("there is no such option")


@pytest.mark.parametrize("key", ["maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay"])
def test_limits_of_a_batch_that_the_job_does_not_know_of_are_rejected(key: str, file: Path) -> None:
    file.write_text(f"{key} = 100\n")
    (problem,) = problems(dict(REQUIRED), {}, file)
    assert "use max-requests-per-batch" in problem


@pytest.mark.parametrize("key", ["kafka.max.request.size", "kafka.buffer.memory"])
def test_a_producer_that_cannot_send_the_largest_row_is_refused_with_the_least_value(key: str) -> None:
    least = 8 * 1024 * 1024 + 64 * 1024
    assert problems({**REQUIRED, key: str(least - 1)}) == [
        f"{key} (given with --set): the job needs {least} or more, not {least - 1}"
    ]
    (problem,) = problems(dict(REQUIRED), {"GROUP_COORDINATOR_" + key.upper().replace(".", "_"): "8m"})
    assert problem.endswith(f"the job needs {least} or more, not 8m")
    assert load_options({**REQUIRED, key: str(least)}, {}).kafka == {key.removeprefix("kafka."): str(least)}


def test_a_batch_reads_a_limited_number_of_requests() -> None:
    assert load_options(REQUIRED, {}).max_requests_per_batch == 50_000
    assert load_options({**REQUIRED, "max_requests_per_batch": 7}, {}).max_requests_per_batch == 7


def test_spark_settings_that_the_job_owns_are_rejected() -> None:
    (problem,) = problems({**REQUIRED, "spark.sql.shuffle.partitions": "5"})
    assert "use state-partitions" in problem


def test_contradictory_options_are_rejected() -> None:
    flags: dict[str, object] = {
        **REQUIRED,
        "group.min.session.timeout.ms": "9000",
        "group.max.session.timeout.ms": "8000",
    }
    assert "is greater than" in problems(flags)[0]


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    assert str(tmp_path / "none.toml") in problems(dict(REQUIRED), {}, tmp_path / "none.toml")[0]
    (tmp_path / "bad.toml").write_text("= 5")
    assert "is not TOML" in problems(dict(REQUIRED), {}, tmp_path / "bad.toml")[0]


def test_librdkafka_receives_shared_settings_and_its_own() -> None:
    jaas = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="me" password="a\\"b";'
    flags = {
        **REQUIRED,
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": jaas,
        "kafka.ssl.truststore.location": "/truststore.jks",
        "librdkafka.ssl.ca.location": "/ca.pem",
    }
    options = load_options(flags, {})
    assert options.librdkafka_config == {
        "bootstrap.servers": "kafka:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": 'a"b',
        "ssl.ca.location": "/ca.pem",
    }
    assert options.java_client_config["ssl.truststore.location"] == "/truststore.jks"
