"""The pages of the decisions: their numbers, their headings, and the index."""

import re

from tests.docs.markdown import ROOT, titles

FOLDER = ROOT / "docs" / "decisions"
PAGES = sorted(FOLDER.glob("0*.md"))
HEADINGS = ["Context", "Choices", "What was measured", "What would change our mind"]

ROW = re.compile(r"^\| \[(\d{4})\]\((\S+)\) \| (.+) \| (\d{4}-\d\d-\d\d) \|$", re.MULTILINE)


def test_the_numbers_have_no_gap() -> None:
    assert [page.name[:4] for page in PAGES] == [f"{number:04}" for number in range(1, len(PAGES) + 1)]
    assert len(PAGES) >= 9


def test_each_page_has_its_number_and_the_four_headings() -> None:
    for page in PAGES:
        first, *others = titles(page)
        assert first.startswith(f"{page.name[:4]} "), page.name
        assert others == HEADINGS, page.name


def test_the_index_and_the_pages_agree() -> None:
    indexed = [(number, file, title) for number, file, title, _ in ROW.findall((FOLDER / "README.md").read_text())]
    assert indexed == [(page.name[:4], page.name, titles(page)[0][5:]) for page in PAGES]
    assert {page.name for page in FOLDER.iterdir()} == {"README.md", *(page.name for page in PAGES)}
