"""What a release requires of the repository: a version that is described and has no tag yet, and a clean tree."""

import re
import subprocess
import tomllib
from pathlib import Path

UNRELEASED = "Unreleased"


class NotReady(Exception):
    """The repository cannot be released; the message says why and what to do."""


def version_of(root: Path) -> str:
    """The version that ``pyproject.toml`` states."""
    version: str = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    return version


def sections(changelog: str) -> dict[str, str]:
    """The text of each section of a changelog, by its version (or "Unreleased"), the newest first."""
    headings = list(re.finditer(r"^## (\S+)(?: - .*)?\n", changelog, re.MULTILINE))
    ends = [following.start() for following in headings[1:]] + [len(changelog)]
    return {heading[1]: changelog[heading.end() : end] for heading, end in zip(headings, ends, strict=True)}


def has_entries(section: str) -> bool:
    """Whether a section has more than headings."""
    return re.search(r"^- ", section, re.MULTILINE) is not None


def check_ready(root: Path) -> str:
    """Check that the repository at ``root`` can be released as it is; return the version's part of the changelog.

    Raises:
        NotReady: the tree has changes, the changelog does not describe the version, or the version has a tag.
    """
    version = version_of(root)
    if changes := git(root, "status", "--porcelain"):
        raise NotReady(f"the tree has changes that are not committed:\n{changes}")
    described = sections((root / "CHANGELOG.md").read_text())
    if not has_entries(described.get(version, "")):
        raise NotReady(f"CHANGELOG.md has no entries for {version}, the version in pyproject.toml: add the section")
    if has_entries(described.get(UNRELEASED, "")):
        raise NotReady(f"CHANGELOG.md has entries under {UNRELEASED}: move them to the section of {version}")
    if git(root, "tag", "--list", tag_of(version)):
        raise NotReady(f"the tag {tag_of(version)} exists: raise the version in pyproject.toml")
    return described[version]


def tag_of(version: str) -> str:
    """The name of a version's tag."""
    return f"v{version}"


def add_tag(root: Path, version: str, description: str) -> None:
    """Tag the commit that is checked out, with the version's part of the changelog as the message."""
    message = f"Version {version}\n\n{description.strip()}\n"
    # Headings begin with the character that git takes for a comment.
    git(root, "tag", "--annotate", "--cleanup=verbatim", "--message", message, tag_of(version))


def git(root: Path, *arguments: str) -> str:
    """Run git in a repository; return what it prints, without the last line break."""
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.rstrip("\n")
