"""Refusals on the page in a real browser: marks that answer to the pointer, and a list."""

import html
import json
import re
from pathlib import Path

import pytest

from streaming.explain.page.of_group import page_of_story
from tests.explain.page.chromium import chromium, dom_of
from tests.explain.refusals.test_telling import HOSTILE, incident, told_with_refusals

pytestmark = pytest.mark.skipif(
    chromium() is None,
    reason="there is no chromium on the PATH (Debian: apt-get install chromium); other tests check the page's data",
)

POINT = """
const tipAt = (x, y) => {
  const box = plot.getBoundingClientRect();
  plot.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + x, clientY: box.top + y, bubbles: true }));
  return tip.innerText;
};
const [commit, join] = refusals;
const place = view.rows.findIndex((one) => one.number === commit.lane);
const ofMember = tipAt(xOf(commit.first), AXIS + STRIP + (place + 0.5) * rowHeight());
const ofNone = tipAt(xOf(join.first), AXIS + STRIP / 2);
search.value = "illegal_generation";
search.dispatchEvent(new Event("input"));
draw();
document.title = JSON.stringify([ofMember, ofNone, view.rows.map((one) => one.number), commit.lane]);
"""


def test_the_pointer_shows_a_refusal_and_the_search_finds_its_member(tmp_path: Path) -> None:
    text = page_of_story(*told_with_refusals(incident()))
    # The page's own policy would not let the script run.
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    file = tmp_path / "page.html"
    file.write_text(text.replace("</body>", f"<script>{{ {POINT} }}</script></body>"))
    (title,) = re.findall(r"<title>(.*?)</title>", dom_of(file, tmp_path / "profile"), re.DOTALL)
    of_member, of_none, rows, lane = json.loads(html.unescape(title))
    assert "refused OffsetCommit: ILLEGAL_GENERATION" in of_member
    assert "the group is in generation 1 since" in of_member
    assert "refused JoinGroup: INCONSISTENT_GROUP_PROTOCOL, 2 times until" in of_none
    assert rows == [lane]


def test_the_list_shows_refusals_as_text(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(page_of_story(*told_with_refusals(incident(HOSTILE))))
    dom = dom_of(file, tmp_path / "profile")
    (section,) = re.findall(r'<section id="refused">(.*?)</section>', dom, re.DOTALL)
    assert "3 requests, among them 1 commit" in section
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in section
    assert len(re.findall(r"<script\b", dom)) == 2
