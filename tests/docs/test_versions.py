"""What the documents say of versions: that of the project, and the formats of the stored state."""

import re

from coordinator_logic.snapshot import FORMAT_VERSION
from tests.docs.markdown import ROOT
from tests.release.repository import version_of

SNAPSHOTS = ROOT / "tests" / "logic" / "snapshots"


def test_the_readme_names_the_version_and_its_wheel() -> None:
    readme, version = (ROOT / "README.md").read_text(), version_of(ROOT)
    assert f"version {version}. " in readme
    assert set(re.findall(r"spark_group_coordinator-([\w.]+)-py3", readme)) == {version}


def test_each_format_of_the_stored_state_is_listed() -> None:
    listed = [int(number) for number in re.findall(r"^\| (\d+) \|", (ROOT / "docs" / "versions.md").read_text(), re.M)]
    assert listed == sorted({int(path.stem.split("-")[1]) for path in SNAPSHOTS.glob("format-*.hex")})
    assert listed[-1] == FORMAT_VERSION
