"""`make release`, of a repository that has this source tree and a version of its own. It needs a network."""

import subprocess
import sys
from pathlib import Path
from shutil import copytree

import pytest

from tests.release.distributions import BUILD_SECONDS, INSTALL_SECONDS, NOT_SOURCE
from tests.release.repository import UNRELEASED, git, version_of
from tests.release.test_repository import commit_all

ROOT = Path(__file__).resolve().parents[2]
VERSION = "99.0.0"

pytestmark = pytest.mark.timeout(2 * (BUILD_SECONDS + INSTALL_SECONDS))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """The source tree as version 99.0.0, with everything that was unreleased in the section of that version."""
    root = tmp_path / "project"
    copytree(ROOT, root, ignore=NOT_SOURCE)
    project, changelog = root / "pyproject.toml", root / "CHANGELOG.md"
    project.write_text(project.read_text().replace(f'version = "{version_of(root)}"', f'version = "{VERSION}"', 1))
    section = f"## {UNRELEASED}\n\n## {VERSION} - 2100-01-01\n\n- A change.\n"
    changelog.write_text(changelog.read_text().replace(f"## {UNRELEASED}\n", section, 1))
    commit_all(root)
    return root


def release(root: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """Run what `make release` runs."""
    command = [sys.executable, "-m", "tests.release", "--root", str(root), *flags]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_a_release_is_built_tried_and_tagged(repository: Path) -> None:
    # The service of the audit may be out of reach.
    released = release(repository, "--unaudited")
    assert released.returncode == 0, released.stderr
    assert released.stdout.splitlines()[-1].startswith(f"tagged v{VERSION}")
    files = {path.name for path in (repository / "dist").iterdir()}
    package = f"spark_group_coordinator-{VERSION}"
    assert files == {f"{package}.tar.gz", f"{package}-py3-none-any.whl", f"{package}.cdx.json"}
    assert "audited" in released.stdout
    assert git(repository, "rev-parse", f"v{VERSION}^{{commit}}") == git(repository, "rev-parse", "HEAD")
    assert git(repository, "status", "--porcelain") == ""
    again = release(repository, "--dry-run")
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr.startswith(f"the tag v{VERSION} exists")
