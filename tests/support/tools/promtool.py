"""Prometheus' own tool for rules: from the PATH, or unpacked from Debian's package into the user's cache."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

__all__ = ["promtool"]

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "group-coordinator"


def promtool() -> str:
    """The path of promtool. Raises RuntimeError if it cannot be had: without it the rules would go untested."""
    if installed := shutil.which("promtool"):
        return installed
    unpacked = CACHE / "prometheus"
    if not (unpacked / "usr" / "bin" / "promtool").exists():
        try:
            _unpack_package(unpacked)
        except (OSError, subprocess.CalledProcessError) as error:
            raise RuntimeError(
                "the alert rules cannot be tested: promtool is not on the PATH, and Debian's package `prometheus` "
                f"cannot be downloaded: {error}"
            ) from error
    return str(unpacked / "usr" / "bin" / "promtool")


def _unpack_package(folder: Path) -> None:
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        subprocess.run(["apt-get", "download", "prometheus"], cwd=scratch, check=True, capture_output=True)
        (package,) = Path(scratch).glob("prometheus_*.deb")
        contents = Path(scratch) / "contents"
        subprocess.run(["dpkg", "-x", package, contents], check=True, capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)
        contents.rename(folder)
