"""The figures on which docs/deploy.md bases its sizes are those that were measured."""

import re

from tests.docs.markdown import ROOT

ROW = re.compile(r"^\| .* \| ([\d.,]+ (?:GiB|MiB|cores)) \| \[[^]]+\]\(performance\.md#([\w-]+)\) \|$", re.MULTILINE)


def test_each_figure_of_the_sizing_is_in_the_section_that_it_names() -> None:
    sizing = (ROOT / "docs" / "deploy.md").read_text().partition("## Sizing\n")[2].partition("\n## ")[0]
    rows = ROW.findall(sizing)
    # All but the head of the table and the line below it.
    assert len(rows) == len(re.findall(r"^\|", sizing, re.MULTILINE)) - 2 > 0
    performance = (ROOT / "docs" / "performance.md").read_text()
    for figure, anchor in rows:
        title = anchor.replace("-", " ")
        section = re.search(rf"^## {title}\n(.*?)(?=^## )", performance, re.MULTILINE | re.DOTALL | re.IGNORECASE)
        assert section is not None, anchor
        number = re.escape(figure.removesuffix(" MiB"))
        assert re.search(rf"\| {number} \|", section[1]), figure
