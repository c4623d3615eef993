"""The configuration of a single group: Kafka's names, and the coordinator's bounds.

A group's own value holds in place of the coordinator's. As in Kafka, a group can have settings of any type: they are
kept for the type that it has, or will have. Source: GroupConfig of Kafka 4.3.
"""

from collections.abc import Mapping


class InvalidGroupConfig(Exception):
    """A configuration that a group cannot have; the request is answered INVALID_CONFIG."""


def changed(
    before: Mapping[str, int], changes: Mapping[str, str | None], settings: Mapping[str, range]
) -> dict[str, int]:
    """A group's own values after changes, of which None removes one.

    ``settings`` are the names that there are, with the values that the coordinator allows.

    Raises:
        InvalidGroupConfig: an unknown name, or a value that is no integer or outside the coordinator's bounds.
    """
    after = dict(before)
    for name, text in changes.items():
        if name not in settings:
            raise InvalidGroupConfig(f"Unknown group config name: {name}")
        if text is None:
            after.pop(name, None)
        else:
            after[name] = _value(name, text, settings[name])
    return after


def _value(name: str, text: str, allowed: range) -> int:
    # int() would accept underscores, and digits of other scripts.
    if not (text.isascii() and text.removeprefix("-").isdigit()):
        raise InvalidGroupConfig(f"Invalid value {text} for configuration {name}: Not a number of type INT")
    # A number of many digits is out of bounds, and takes long to read.
    value = int(text) if len(text) <= len(str(2**31)) else allowed.stop
    if value not in allowed:
        raise InvalidGroupConfig(f"{name} must be in the range {allowed.start} to {allowed.stop - 1} inclusive.")
    return value
