"""Options from flags, environment variables and a file: precedence, keys, and the errors that name a source."""

from pathlib import Path
from typing import Annotated

import msgspec
import pytest

from streaming.contract.errors import BadOptions
from streaming.contract.option_sources import OptionLoader


class Limits(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    max_size: Annotated[int, msgspec.Meta(ge=1)] = 10
    set_by_process: int = 0


class Options(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    server_address: str
    key_file: str | None = None
    limits: Limits = msgspec.field(default_factory=Limits)
    kafka: dict[str, str] = {}
    spark: dict[str, str] = {}


LOADER = OptionLoader(
    Options,
    "PROGRAM_",
    not_options={"set-by-process"},
    refused={"spark.master": "use another option"},
    not_in_environment={"spark"},
)
REQUIRED = {"server_address": "host:1"}


def problems(flags: dict[str, object], environ: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(BadOptions) as refused:
        LOADER.load(flags, environ)
    return str(refused.value).splitlines()


def test_flags_take_precedence_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "options.toml"
    file.write_text("server-address = 'file'\nmax-size = 1\nkey-file = 'file'\n")
    environ = {"PROGRAM_SERVER_ADDRESS": "environment", "PROGRAM_MAX_SIZE": "2"}
    options = LOADER.load({"server_address": "flag", "max_size": None}, environ, file)
    assert (options.server_address, options.limits.max_size, options.key_file) == ("flag", 2, "file")


def test_entries_of_dicts_are_passed_as_text_under_the_rest_of_the_key() -> None:
    environ = {"PROGRAM_KAFKA_SASL_USERNAME": "me", "PROGRAM_SPARK_MASTER": "ignored", "OTHER_KAFKA_X": "ignored"}
    options = LOADER.load(
        {**REQUIRED, "kafka.linger.ms": 5, "kafka.enabled": True, "spark.executorCores": "2"}, environ
    )
    assert options.kafka == {"sasl.username": "me", "linger.ms": "5", "enabled": "true"}
    assert options.spark == {"executorCores": "2"}


def test_a_path_is_an_option_of_type_string(tmp_path: Path) -> None:
    assert LOADER.load({**REQUIRED, "key_file": tmp_path}).key_file == str(tmp_path)


def test_every_problem_names_the_option_and_its_source() -> None:
    flags = {"max_size": 0, "kafka.nested": ["x"], "spark.master": "local", "set_by_process": 1, "kafka": "x"}
    assert [problem.split(":")[0] for problem in problems(flags)] == [
        "max-size (given as --max-size)",
        "kafka.nested (given with --set)",
        "spark.master (given with --set)",
        "set-by-process (given as --set-by-process)",
        "kafka (given as --kafka)",
        "server-address is missing",
    ]
    assert problems({}, {"PROGRAM_MAX_SIZE": "many"})[0].startswith("max-size (given as PROGRAM_MAX_SIZE): ")


def test_a_missing_required_option_is_explained_for_all_sources() -> None:
    assert problems({}) == [
        "server-address is missing: give --server-address, PROGRAM_SERVER_ADDRESS, or server-address in the file"
    ]
