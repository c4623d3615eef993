"""The files and tests that the catalogue of Kafka's cases names exist."""

import re
from pathlib import Path

LOGIC = Path(__file__).parent
CATALOGUE = (LOGIC / "CATALOGUE.md").read_text()


def test_every_file_that_the_catalogue_names_exists() -> None:
    named = re.findall(r"`([\w/]+\.py)`", CATALOGUE)
    missing = [name for name in named if not ((LOGIC / name).exists() or (LOGIC.parents[1] / name).exists())]
    assert named
    assert missing == []


def test_every_test_that_the_catalogue_names_is_in_the_file_it_names() -> None:
    named = re.findall(r"`(test_\w+)` in `([\w/]+\.py)`", CATALOGUE)
    assert named
    for test, file in named:
        assert f"def {test}(" in (LOGIC / file).read_text()
