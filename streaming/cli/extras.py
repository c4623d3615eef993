"""The extras of the distribution, and the check that a command's extras are installed.

Only the standard library is imported, directly or not: the check runs before anything that an extra brings.
"""

from collections.abc import Mapping
from importlib.util import find_spec

from streaming.contract.distribution import DISTRIBUTION

EXTRAS: Mapping[str, tuple[str, ...]] = {
    "job": ("pyspark", "pandas", "pyarrow", "prometheus_client", "psutil", "tornado"),
    "cli": ("typer", "rich", "tornado"),
    "gateway": ("kio", "prometheus_client", "tomli_w", "tornado"),
    "demo": ("kafka",),
    "drill": ("libfaketime",),
    "top": ("textual",),
}
"""The modules that each extra adds; a test compares them with pyproject.toml."""


def missing_modules(extra: str) -> list[str]:
    """The modules of an extra that are not installed."""
    return [module for module in EXTRAS[extra] if not _is_installed(module)]


def missing_extras(command: str, *extras: str) -> str | None:
    """The line for a command whose extras are incomplete; None when every module of the extras is installed."""
    missing = {extra: modules for extra in extras if (modules := missing_modules(extra))}
    if not missing:
        return None
    needed = dict.fromkeys(module for modules in missing.values() for module in modules)
    return f"{command} needs {', '.join(needed)}: pip install '{DISTRIBUTION}[{','.join(missing)}]'"


def _is_installed(module: str) -> bool:
    """Whether a top-level module can be imported, without importing it."""
    try:
        return find_spec(module) is not None
    except ImportError:
        return False
