"""Variables of this process's environment, which its children inherit, for a while."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


@contextmanager
def in_environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables until the end of the block."""
    former = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in former.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
