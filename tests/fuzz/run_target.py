"""Fuzz one target in this process: ``python -m tests.fuzz.run_target TARGET [ARGUMENT OF LIBFUZZER ...]``.

libFuzzer ends the process, so each target has one of its own; :mod:`tests.fuzz.__main__` starts them.
"""

import importlib
import sys

import atheris

INSTRUMENTED = ["coordinator_logic", "streaming", "kio"]


def main() -> None:
    """Instrument the project and kio, and hand this process over to libFuzzer."""
    name, arguments = sys.argv[1], sys.argv[2:]
    with atheris.instrument_imports(include=INSTRUMENTED):
        target = importlib.import_module(f"tests.fuzz.targets.{name}")
    atheris.Setup([sys.argv[0], *arguments], target.run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
