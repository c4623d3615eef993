"""Load options from command-line flags, environment variables and a TOML file.

Flags take precedence over the environment, and the environment over the file. An options type is a
:class:`msgspec.Struct`, and each of its fields is one of three things:

* a struct, whose own fields are options of the same rank (``limits``, ``protocol``);
* a ``dict[str, str]``, whose entries are passed to a library unmodified: ``kafka.<key>`` is an entry of ``kafka``;
* anything else: one option with the field's encoded name as its key.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar, get_origin

import msgspec

from streaming.contract.errors import BadOptions
from streaming.contract.option_values import converted as converted_value

__all__ = ["OptionLoader"]

OptionsT = TypeVar("OptionsT", bound=msgspec.Struct)


class _Sourced(NamedTuple):
    """An option's value, and its source in the words of an error message."""

    value: object
    source: str


class OptionLoader(Generic[OptionsT]):
    """Loads the options of one type.

    Args:
        options_type: The struct that holds the options. A field without a default is a required option.
        environment_prefix: The prefix of the options' environment variables.
        not_options: Keys of nested structs that are not options: the process sets them.
        refused: Keys that are rejected, each with the reason.
        not_in_environment: ``dict`` fields whose entries have no variables, because their keys need capital letters.
        least: Entries of ``dict`` fields that must be whole numbers of at least this.
    """

    def __init__(
        self,
        options_type: type[OptionsT],
        environment_prefix: str,
        *,
        not_options: AbstractSet[str] = frozenset(),
        refused: Mapping[str, str] | None = None,
        not_in_environment: AbstractSet[str] = frozenset(),
        least: Mapping[str, int] | None = None,
    ) -> None:
        self._options_type = options_type
        self._environment_prefix = environment_prefix
        self._refused = refused or {}
        self._not_in_environment = not_in_environment
        self._least = least or {}
        self._structs: dict[str, type[msgspec.Struct]] = {}
        self._pass_through: list[str] = []
        self._places: dict[str, tuple[str | None, Any]] = {}
        self._required: list[str] = []
        for field in msgspec.structs.fields(options_type):
            if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
                self._structs[field.encode_name] = field.type
                nested = {n.encode_name: n.type for n in msgspec.structs.fields(field.type)}
                self._places |= {key: (field.encode_name, t) for key, t in nested.items() if key not in not_options}
            elif get_origin(field.type) is dict:
                self._pass_through.append(field.encode_name)
            else:
                self._places[field.encode_name] = (None, field.type)
                if field.required:
                    self._required.append(field.encode_name)

    def load(
        self,
        flags: Mapping[str, object],
        environ: Mapping[str, str] | None = None,
        file: Path | None = None,
        defaults: Mapping[str, object] | None = None,
    ) -> OptionsT:
        """Merge the three sources and validate the result.

        Args:
            flags: Flags by parameter name (``topic_prefix``) or key (``kafka.linger.ms``); None means not given.
            environ: Environment variables; those that name no option are ignored.
            file: A TOML file.
            defaults: Values, by key, of options that no source gives.

        Raises:
            BadOptions: Options are missing or invalid. The message has one line for each problem and names its source.
        """
        sourced = {key: _Sourced(value, "the default") for key, value in (defaults or {}).items()}
        if file is not None:
            sourced.update(_from_file(file))
        sourced.update(self._from_environment(environ or {}))
        sourced.update(_from_flags(flags))
        return self._validated(sourced)

    def _variable(self, key: str) -> str:
        return self._environment_prefix + re.sub(r"[-.]", "_", key).upper()

    def _from_environment(self, environ: Mapping[str, str]) -> Iterator[tuple[str, _Sourced]]:
        """Ignore other variables with the same prefix: Kubernetes sets some for every service."""
        key_of = {self._variable(key): key for key in self._places}
        pass_through = tuple(
            self._variable(f"{name}.") for name in self._pass_through if name not in self._not_in_environment
        )
        for variable, value in environ.items():
            if variable in key_of:
                yield key_of[variable], _Sourced(value, f"given as {variable}")
            elif variable.startswith(pass_through):
                key = variable.removeprefix(self._environment_prefix).lower().replace("_", ".")
                yield key, _Sourced(value, f"given as {variable}")

    def _validated(self, sourced: Mapping[str, _Sourced]) -> OptionsT:
        values: dict[str, object] = {}
        nested: dict[str, dict[str, object]] = {name: {} for name in (*self._structs, *self._pass_through)}
        problems = []
        for key, (value, source) in sourced.items():
            try:
                owner, name, converted = self._converted(key, value)
            except ValueError as error:
                problems.append(f"{key} ({source}): {error}")
            else:
                (values if owner is None else nested[owner])[name] = converted
        problems += [
            f"{key} is missing: give --{key}, {self._variable(key)}, or {key} in the file"
            for key in self._required
            if key not in sourced
        ]
        if problems:
            raise BadOptions("\n".join(problems))
        try:
            structs = {name: msgspec.convert(nested[name], struct) for name, struct in self._structs.items()}
        except msgspec.ValidationError as error:
            raise BadOptions(str(error)) from error
        return msgspec.convert({**values, **nested, **structs}, self._options_type)

    def _converted(self, key: str, value: object) -> tuple[str | None, str, object]:
        """Return the field that the option belongs to (None: its own), the option's name, and the converted value."""
        if key in self._refused:
            raise ValueError(f"refused: {self._refused[key]}")
        if key in self._places:
            owner, option_type = self._places[key]
            return owner, key, converted_value(value, option_type)
        group, _, rest = key.partition(".")
        if group in self._pass_through and rest:
            return group, rest, self._at_least(key, _as_text(value))
        raise ValueError("there is no such option")

    def _at_least(self, key: str, text: str) -> str:
        # Kafka's keys are lower case; Spark ignores the case of its own.
        least = self._least.get(key.lower())
        if least is not None and not (text.strip().isdecimal() and int(text) >= least):
            raise ValueError(f"the job needs {least} or more, not {text}")
        return text


def _from_flags(flags: Mapping[str, object]) -> Iterator[tuple[str, _Sourced]]:
    for name, value in flags.items():
        if value is None:
            continue
        plain = str(value) if isinstance(value, Path) else value
        if "." in name:
            yield name, _Sourced(plain, "given with --set")
        else:
            key = name.replace("_", "-")
            yield key, _Sourced(plain, f"given as --{key}")


def _from_file(file: Path) -> Iterator[tuple[str, _Sourced]]:
    """Read the options of a TOML file. Raises :class:`BadOptions` if the file cannot be read or is not TOML."""
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadOptions(f"{file} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadOptions(f"{file} is not TOML: {error}") from error
    for key, value in _flattened(content):
        yield key, _Sourced(value, f"given in {file}")


def _flattened(table: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Join nested keys with dots: ``group.max.size = 5`` and ``[group.max] size = 5`` are the same option."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flattened(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _as_text(value: object) -> str:
    """Spell a TOML value as Kafka and Spark spell it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float)):
        return str(value)
    raise ValueError(f"expected a string, a number or true/false, got {value!r}")
