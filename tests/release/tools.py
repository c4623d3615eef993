"""The tools of a release that no other part of the project needs: an environment of their own has them."""

import subprocess
import sys
import venv
from pathlib import Path

from streaming.embedded.jars import cache_folder
from tests.release.distributions import INSTALL_SECONDS, BrokenDistribution

PACKAGES = ("cyclonedx-bom>=7.5,<8", "pip-audit>=2.10,<3")


def release_tools() -> Path:
    """The ``bin`` folder of the environment, which is made at the first release and kept in the cache.

    Raises:
        BrokenDistribution: pip has failed; the message is its output.
    """
    folder = cache_folder() / "tools" / "release"
    done = folder / "installed.txt"
    if not done.exists() or done.read_text() != _wanted():
        venv.create(folder, with_pip=True, clear=True)
        command = [str(folder / "bin" / "python"), "-I", "-m", "pip", "install", "--quiet", *PACKAGES]
        installed = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS)
        if installed.returncode != 0:
            raise BrokenDistribution(f"{' '.join(command)}\n{installed.stdout}{installed.stderr}")
        done.write_text(_wanted())
    return folder / "bin"


def _wanted() -> str:
    return "\n".join((sys.version, *PACKAGES))
