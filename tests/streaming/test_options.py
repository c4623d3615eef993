"""Options: three places, one order of precedence, errors that say where."""

from pathlib import Path

import pytest

from streaming.jars import Jars
from streaming.options import BadOptions, JobOptions, load_options
from streaming.profiles import PROFILES
from streaming.session import spark_settings

NEEDED = {"bootstrap_servers": "kafka:9092", "checkpoint": "/tmp/checkpoint"}


def problems(flags: dict[str, object], environ: dict[str, str] | None = None, file: Path | None = None) -> list[str]:
    with pytest.raises(BadOptions) as refused:
        load_options(flags, environ or {}, file)
    return str(refused.value).splitlines()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "options.toml"


def test_two_options_are_enough() -> None:
    options = load_options(NEEDED, {})
    assert isinstance(options, JobOptions)
    assert (options.bootstrap_servers, options.checkpoint) == ("kafka:9092", "/tmp/checkpoint")
    assert options.protocol.group_initial_rebalance_delay_ms == 3_000


def test_a_profile_says_how_often_there_is_a_batch_unless_the_interval_is_given() -> None:
    def interval(**flags: object) -> int:
        return load_options({**NEEDED, **flags}, {}).batch_interval_ms

    assert interval(profile="latency") == 0 < interval() < interval(profile="object-store")
    assert interval() == interval(profile="balanced")
    assert interval(profile="object-store", trigger_interval_ms=7) == 7
    assert problems({**NEEDED, "profile": "quick"})[0].startswith("profile (given as --profile): ")


def test_a_profiles_spark_settings_give_way_to_the_users() -> None:
    key = "sql.streaming.stateStore.maintenanceInterval"
    jars = Jars([], [])
    settings = spark_settings(load_options({**NEEDED, "profile": "object-store"}, {}), jars)
    assert settings[f"spark.{key}"] == PROFILES["object-store"].spark[f"spark.{key}"]
    chosen = load_options({**NEEDED, "profile": "object-store", f"spark.{key}": "9s"}, {})
    assert spark_settings(chosen, jars)[f"spark.{key}"] == "9s"


@pytest.mark.parametrize(
    ("master", "local"),
    [("local", True), ("local[*]", True), ("local-cluster[1,1,768]", False), ("spark://host:7077", False)],
)
def test_executors_in_processes_of_their_own_are_a_cluster(master: str, local: bool) -> None:
    assert load_options({**NEEDED, "master": master}, {}).is_local == local


def test_flags_come_before_the_environment_and_that_before_the_file(file: Path) -> None:
    file.write_text("trigger-interval-ms = 1\nmetrics-port = 1\ntopic-prefix = 'file-'\n")
    environ = {"GROUP_COORDINATOR_TRIGGER_INTERVAL_MS": "2", "GROUP_COORDINATOR_METRICS_PORT": "2"}
    options = load_options({**NEEDED, "trigger_interval_ms": 3, "metrics_port": None}, environ, file)
    assert (options.trigger_interval_ms, options.metrics_port, options.topic_prefix) == (3, 2, "file-")


def test_all_may_come_from_the_file(file: Path) -> None:
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


def test_protocol_and_kafka_keys_may_come_from_the_environment() -> None:
    environ = {
        "GROUP_COORDINATOR_GROUP_MAX_SIZE": "7",
        "GROUP_COORDINATOR_KAFKA_SASL_JAAS_CONFIG": "x",
        "GROUP_COORDINATOR_SERVICE_HOST": "made by Kubernetes",
        "GROUP_COORDINATOR_CACHE": "/another/module's",
    }
    options = load_options(NEEDED, environ)
    assert options.protocol.group_max_size == 7
    assert options.kafka == {"sasl.jaas.config": "x"}


def test_every_problem_says_what_and_where(file: Path) -> None:
    file.write_text("trigger-interval-ms = 'soon'\n")
    environ = {"GROUP_COORDINATOR_METRICS_PORT": "tcp://10.0.0.1:9000"}
    flags: dict[str, object] = {"checkpoint": "/c", "state_partitions": 0, "group.max.size": "many"}
    found = problems(flags, environ, file)
    assert [problem.split(":")[0] for problem in found] == [
        f"trigger-interval-ms (given in {file})",
        "metrics-port (given as GROUP_COORDINATOR_METRICS_PORT)",
        "state-partitions (given as --state-partitions)",
        "group.max.size (given as a flag)",
        "bootstrap-servers is missing",
    ]
    assert found[2].endswith("Expected `int` >= 1")


def test_an_option_that_does_not_exist_is_refused(file: Path) -> None:
    file.write_text("trigger-intervall-ms = 5\n")
    assert problems(dict(NEEDED), {}, file) == [f"trigger-intervall-ms (given in {file}): there is no such option"]
    assert problems({**NEEDED, "requests.partitions": "5"})[0].endswith("there is no such option")


@pytest.mark.parametrize("key", ["maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay"])
def test_what_would_leave_heartbeats_unread_is_refused_with_the_reason(key: str, file: Path) -> None:
    file.write_text(f"{key} = 100\n")
    (problem,) = problems(dict(NEEDED), {}, file)
    assert "every batch must read all that is available" in problem


def test_settings_of_spark_that_the_job_owns_are_refused() -> None:
    (problem,) = problems({**NEEDED, "spark.sql.shuffle.partitions": "5"})
    assert "use state-partitions" in problem


def test_options_that_contradict_each_other_are_refused() -> None:
    flags: dict[str, object] = {
        **NEEDED,
        "group.min.session.timeout.ms": "9000",
        "group.max.session.timeout.ms": "8000",
    }
    assert "is greater than" in problems(flags)[0]


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    assert str(tmp_path / "none.toml") in problems(dict(NEEDED), {}, tmp_path / "none.toml")[0]
    (tmp_path / "bad.toml").write_text("= 5")
    assert "is not TOML" in problems(dict(NEEDED), {}, tmp_path / "bad.toml")[0]


def test_librdkafka_gets_what_it_shares_with_java_and_its_own() -> None:
    jaas = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="me" password="a\\"b";'
    flags = {
        **NEEDED,
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
