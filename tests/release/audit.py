"""The audit of a release's Python packages: which of them have known vulnerabilities.

pip-audit asks a service. Where that does not know a package, pip-audit reports no known vulnerabilities; this says that
the package was not audited.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

SECONDS = 600
SHOWN = 5


@dataclass(frozen=True)
class Audit:
    """What an audit has found: a line for each vulnerability, and why packages were not audited."""

    vulnerabilities: list[str] = field(default_factory=list)
    not_audited: list[str] = field(default_factory=list)
    audited: int = 0

    @property
    def summary(self) -> str:
        """The result in one line."""
        if self.not_audited:
            shown = "; ".join(self.not_audited[:SHOWN])
            more = len(self.not_audited) - SHOWN
            return f"not audited: {shown}" + (f"; and {more} more" if more > 0 else "")
        return f"audited {self.audited} packages: {len(self.vulnerabilities)} known vulnerabilities"


def audit(packages: Mapping[str, str], tools: Path, environment: Mapping[str, str] | None = None) -> Audit:
    """Ask the service about packages, by name and version.

    tools: the folder with pip-audit. environment: variables of pip-audit that override those of this process, such as
    ``PIP_AUDIT_VULNERABILITY_SERVICE``.
    """
    with tempfile.TemporaryDirectory(prefix="audit-") as folder:
        file = Path(folder) / "requirements.txt"
        file.write_text("".join(f"{name}=={version}\n" for name, version in sorted(packages.items())))
        command = [str(tools / "pip-audit"), "--requirement", str(file), "--no-deps", "--disable-pip"]
        command += ["--format", "json", "--progress-spinner", "off", "--cache-dir", f"{folder}/cache"]
        variables = {**os.environ, **(environment or {})}
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=variables)
    try:
        answered = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        lines = done.stderr.strip().splitlines() or [f"pip-audit has ended with {done.returncode}"]
        return Audit(not_audited=[f"all packages ({lines[-1]})"])
    return read_answer(answered, packages)


def read_answer(answered: list[dict[str, object]], packages: Mapping[str, str]) -> Audit:
    """What pip-audit's list of dependencies means for these packages."""
    vulnerabilities, not_audited = [], []
    for package in answered:
        if "skip_reason" in package:
            not_audited.append(f"{package['name']} ({package['skip_reason']})")
        found = package.get("vulns", [])
        assert isinstance(found, list)
        for each in found:
            helps = ", ".join(each["fix_versions"]) or "no version"
            vulnerabilities.append(f"{package['name']} {package['version']}: {each['id']}, fixed in {helps}")
    missing = packages.keys() - {package["name"] for package in answered}
    not_audited += [f"{name} (no answer)" for name in sorted(missing)]
    return Audit(vulnerabilities, not_audited, len(answered) - len(not_audited) + len(missing))
