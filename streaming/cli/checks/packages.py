"""Python, and whether the installed packages have versions that the distribution supports."""

import operator
import platform
import re
from collections.abc import Iterator
from importlib import metadata

from streaming.cli.checks.finding import Finding, note, ok, problem
from streaming.cli.extras import EXTRAS, missing_modules
from streaming.contract.distribution import DISTRIBUTION, installed_version

_OPERATORS = {"==": operator.eq, ">=": operator.ge, "<": operator.lt}
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?P<range>[^;\[]*)(?:;\s*extra\s*==\s*['\"](?P<extra>\w+)['\"])?$")
_BOUND = re.compile(r"(==|>=|<)\s*([\d.]+)")


def check_packages() -> Iterator[Finding]:
    """One finding for Python, one for the packages that are always needed, and one for each extra."""
    yield ok("Python", platform.python_version())
    try:
        requirements = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        yield note("packages", f"{DISTRIBUTION} is not installed but on the path: supported versions are not known")
        return
    yield _check_versions("packages", requirements, None)
    for extra in EXTRAS:
        if missing := missing_modules(extra):
            install = f"if this machine needs it: pip install '{DISTRIBUTION}[{extra}]'"
            yield note(f"extra {extra}", f"not installed: {', '.join(missing)}", install)
        else:
            yield _check_versions(f"extra {extra}", requirements, extra)


def _check_versions(check: str, requirements: list[str], extra: str | None) -> Finding:
    found, unsupported = [], []
    for requirement in requirements:
        parsed = _REQUIREMENT.match(requirement)
        if parsed is None or parsed["extra"] != extra:
            continue
        name, bounds = parsed["name"], parsed["range"].strip()
        version = installed_version(name)
        found.append(f"{name} {version or 'is missing'}")
        if version is None or not is_supported(version, bounds):
            unsupported.append(f"'{name}{bounds}'")
    if unsupported:
        return problem(check, ", ".join(found), f"pip install {' '.join(unsupported)}")
    return ok(check, ", ".join(found))


def is_supported(version: str, bounds: str) -> bool:
    """Whether a version is within bounds such as ``>=2.2,<3``. Only release numbers are compared."""
    return all(_OPERATORS[sign](_release(version), _release(bound)) for sign, bound in _BOUND.findall(bounds))


def _release(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(?:\.\d+)*", version)
    release = [int(number) for number in found[0].split(".")] if found else []
    while release and release[-1] == 0:
        release.pop()
    return tuple(release)
