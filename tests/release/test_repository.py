"""What `make release` refuses: a tree with changes, a version without a description, a version that has its tag."""

from pathlib import Path

import pytest

from tests.release.repository import (
    UNRELEASED,
    NotReady,
    add_tag,
    check_ready,
    git,
    has_entries,
    sections,
    tag_of,
    version_of,
)

ROOT = Path(__file__).resolve().parents[2]

ENTRIES = "\n### Added\n\n- A command.\n"
CHANGELOG = f"# Changelog\n\n## Unreleased\n\n### Added\n\n## 1.2.0 - 2026-12-01\n{ENTRIES}\n## 1.1.0 - 2026-11-01\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository of version 1.2.0 that can be released."""
    return repository_in(tmp_path / "repository", CHANGELOG)


def repository_in(root: Path, changelog: str) -> Path:
    """A repository with one commit: a project of version 1.2.0 and this changelog."""
    root.mkdir()
    (root / "pyproject.toml").write_text('[project]\nname = "example"\nversion = "1.2.0"\n')
    (root / "CHANGELOG.md").write_text(changelog)
    commit_all(root)
    return root


def commit_all(root: Path) -> None:
    """Make a repository of the folder, unless it is one, and commit what is in it."""
    git(root, "init", "--quiet")
    git(root, "config", "user.name", "tests")
    git(root, "config", "user.email", "tests@localhost")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "A commit")


def test_a_clean_tree_whose_version_is_described_is_ready(repository: Path) -> None:
    assert check_ready(repository).strip() == ENTRIES.strip()


def test_a_tree_with_a_change_is_refused(repository: Path) -> None:
    (repository / "new.py").write_text("")
    with pytest.raises(NotReady, match=r"changes that are not committed:\n\?\? new.py"):
        check_ready(repository)


@pytest.mark.parametrize(
    ("changelog", "reason"),
    [
        (CHANGELOG.replace("1.2.0", "1.3.0"), "has no entries for 1.2.0"),
        (CHANGELOG.replace("- A command.", ""), "has no entries for 1.2.0"),
        (
            CHANGELOG.replace("### Added\n\n##", "### Added\n\n- Another one.\n\n##", 1),
            "move them to the section of 1.2.0",
        ),
    ],
)
def test_a_version_that_the_changelog_does_not_describe_is_refused(tmp_path: Path, changelog: str, reason: str) -> None:
    with pytest.raises(NotReady, match=reason):
        check_ready(repository_in(tmp_path / "repository", changelog))


def test_a_released_version_is_refused(repository: Path) -> None:
    add_tag(repository, "1.2.0", check_ready(repository))
    with pytest.raises(NotReady, match=r"the tag v1.2.0 exists: raise the version"):
        check_ready(repository)


def test_the_tag_has_the_description_with_its_headings(repository: Path) -> None:
    add_tag(repository, "1.2.0", check_ready(repository))
    shown = git(repository, "tag", "--list", "--format=%(contents)", tag_of("1.2.0"))
    assert shown.strip() == "Version 1.2.0\n\n### Added\n\n- A command."


def test_the_sections_of_a_changelog() -> None:
    found = sections(CHANGELOG)
    assert list(found) == ["Unreleased", "1.2.0", "1.1.0"]
    assert [has_entries(section) for section in found.values()] == [False, True, False]


def test_the_changelog_of_this_project_has_its_version() -> None:
    found = sections((ROOT / "CHANGELOG.md").read_text())
    assert next(iter(found)) == UNRELEASED
    assert version_of(ROOT) in found
