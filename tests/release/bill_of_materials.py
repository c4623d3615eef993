"""The software bill of materials of a release, in CycloneDX's JSON: Python packages and jars.

The packages are those that the extras of the wheel need, in the versions of the environment that makes the release. The
jars are those that the job and the embedded broker download.
"""

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from streaming.contract.distribution import DISTRIBUTION
from streaming.embedded.jars import cache_folder, resolve_jars, resolve_s3a_jars
from tests.release.distributions import BrokenDistribution

EXTRAS = ("job", "cli", "gateway", "top")
"""Those of a user; ``demo`` and ``drill`` add what only a demonstration runs."""

SECONDS = 300

JAR_NAME = re.compile(r"(?P<artifact>.+?)-(?P<version>\d[\w.-]*)\.jar")

VALIDATION = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(sys.stdin.read())
sys.exit(f"it is no CycloneDX 1.6: {error}" if error else 0)
"""


def needed_packages(extras: Iterable[str] = EXTRAS) -> dict[str, str]:
    """The installed versions of all packages that the wheel needs with these extras, by canonical name.

    Raises:
        BrokenDistribution: one of them is not installed.
    """
    found: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    left = [(DISTRIBUTION, extra) for extra in ("", *extras)]
    while left:
        name, extra = left.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        try:
            package = distribution(name)
        except PackageNotFoundError as error:
            raise BrokenDistribution(f"{name} is not installed: run `make setup`") from error
        if name != DISTRIBUTION:
            found[name] = package.version
        for text in package.requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                left += [(canonicalize_name(requirement.name), each) for each in ("", *requirement.extras)]
    return found


def jar_components() -> list[dict[str, Any]]:
    """A component for each jar that the project downloads. Raises as :func:`streaming.embedded.jars.resolve_jars`."""
    jars = resolve_jars()
    files = {path.name: path for path in (*jars.connector, *jars.broker, *resolve_s3a_jars())}
    return [_jar_component(path) for _, path in sorted(files.items())]


def _jar_component(path: Path) -> dict[str, Any]:
    parsed = JAR_NAME.fullmatch(path.name)
    assert parsed is not None, path.name
    artifact, version = parsed["artifact"], parsed["version"]
    # Ivy keeps a jar in the folders of its organisation and its module.
    kept = next((cache_folder() / "ivy").glob(f"*/*/*/{path.name}"), None)
    group = None if kept is None else kept.parents[2].name
    component = {
        "type": "library",
        "bom-ref": f"jar:{path.name}",
        "name": artifact,
        "version": version,
        "purl": f"pkg:maven/{group}/{artifact}@{version}" if group else f"pkg:generic/{artifact}@{version}",
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()}],
    }
    return component if group is None else {**component, "group": group}


def bill_of_materials(source: Path, tools: Path, version: str) -> dict[str, Any]:
    """The bill of a release of the tree ``source``; ``tools`` is the folder of :func:`release_tools`.

    Raises:
        BrokenDistribution: a package is missing, or the bill is not valid.
    """
    command = [str(tools / "cyclonedx-py"), "environment", "--pyproject", str(source / "pyproject.toml")]
    whole: dict[str, Any] = json.loads(_checked([*command, "--of", "JSON", sys.executable]))
    bill = without_others(whole, needed_packages())
    bill["metadata"]["component"]["version"] = version
    jars = jar_components()
    bill["components"] += jars
    root = bill["metadata"]["component"]["bom-ref"]
    for entry in bill["dependencies"]:
        if entry["ref"] == root:
            entry["dependsOn"] = sorted({*entry.get("dependsOn", ()), *(jar["bom-ref"] for jar in jars)})
    _checked([str(tools / "python"), "-c", VALIDATION], json.dumps(bill))
    return bill


def without_others(whole: Mapping[str, Any], packages: Mapping[str, str]) -> dict[str, Any]:
    """The bill of an environment without the packages that are not among these. Raises BrokenDistribution."""
    components = [each for each in whole["components"] if canonicalize_name(each["name"]) in packages]
    if missing := packages.keys() - {canonicalize_name(each["name"]) for each in components}:
        raise BrokenDistribution(f"the bill of materials lacks {', '.join(sorted(missing))}")
    kept = {each["bom-ref"] for each in components} | {whole["metadata"]["component"]["bom-ref"]}
    dependencies = [
        {**entry, "dependsOn": [ref for ref in entry.get("dependsOn", ()) if ref in kept]}
        for entry in whole["dependencies"]
        if entry["ref"] in kept
    ]
    return {**whole, "components": components, "dependencies": dependencies}


def _checked(command: list[str], content: str = "") -> str:
    done = subprocess.run(command, input=content, capture_output=True, text=True, timeout=SECONDS)
    if done.returncode != 0:
        raise BrokenDistribution(f"{' '.join(command[:2])}: {done.stderr.strip()}")
    return done.stdout
