"""Entry point of `make release`: check the repository, build, try the wheel, audit what it needs, and tag."""

import json
import sys
import tempfile
from pathlib import Path
from shutil import copy2
from typing import Annotated

import typer

from tests.release.audit import audit
from tests.release.bill_of_materials import bill_of_materials, needed_packages
from tests.release.distributions import (
    BrokenDistribution,
    Distributions,
    build,
    check_contents,
    check_installed,
    empty_environment,
    install,
)
from tests.release.repository import NotReady, add_tag, check_ready, git, tag_of, version_of
from tests.release.tools import release_tools


def main(
    root: Annotated[Path, typer.Option(help="The repository to release.")] = Path(),
    dry_run: Annotated[bool, typer.Option(help="Build and check, but do not tag.")] = False,
    unaudited: Annotated[
        bool, typer.Option(help="Release although packages have known vulnerabilities, or could not be audited.")
    ] = False,
) -> None:
    """Release the commit that is checked out. The files are in ``dist/``; nothing is uploaded."""
    root = root.resolve()
    try:
        description = check_ready(root)
        version = version_of(root)
        with tempfile.TemporaryDirectory(prefix="release-") as folder:
            built = _built_and_tried(root, Path(folder), version)
            tools = release_tools()
            bill = bill_of_materials(root, tools, version)
            _audit(tools, is_required=not (unaudited or dry_run))
            (root / "dist").mkdir(exist_ok=True)
            for file in (built.sdist, built.wheel):
                copy2(file, root / "dist" / file.name)
                print(f"dist/{file.name}")
            materials = root / "dist" / f"{built.wheel.name.partition('-py3')[0]}.cdx.json"
            materials.write_text(json.dumps(bill, indent=2) + "\n")
            print(f"dist/{materials.name}: {len(bill['components'])} packages and jars")
    except (NotReady, BrokenDistribution) as problem:
        sys.exit(f"{problem}")
    if dry_run:
        print(f"dry run: no tag {tag_of(version)}")
        return
    add_tag(root, version, description)
    print(f"tagged {tag_of(version)}; to publish it: git push origin {tag_of(version)}")


def _audit(tools: Path, *, is_required: bool) -> None:
    """Audit the packages and print the result. Raises NotReady if it must be without findings, and is not."""
    found = audit(needed_packages(), tools)
    for line in found.vulnerabilities:
        print(line)
    print(found.summary)
    if is_required and (found.vulnerabilities or found.not_audited):
        raise NotReady(f"{found.summary} (--unaudited releases nevertheless)")


def _built_and_tried(root: Path, folder: Path, version: str) -> Distributions:
    """Build from a clone, which has what is committed and nothing else; try the wheel outside of the tree."""
    source = folder / "source"
    git(root, "clone", "--quiet", "--no-hardlinks", str(root), str(source))
    built = build(source, folder / "dist")
    check_contents(built, source)
    environment = empty_environment(folder / "environment")
    install(environment, f"{built.wheel}[cli]")
    empty = folder / "empty"
    empty.mkdir()
    check_installed(environment, empty, version)
    return built


if __name__ == "__main__":
    typer.run(main)
