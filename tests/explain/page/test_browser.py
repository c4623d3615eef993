"""The page in a real browser: it draws, and shows what clients choose as text."""

import re
from pathlib import Path

import pytest

from tests.explain.page.chromium import chromium, dom_of
from tests.explain.page.pages import html_page
from tests.explain.page.scripted import ScriptedGroup, incident, large

pytestmark = pytest.mark.skipif(
    chromium() is None,
    reason="there is no chromium on the PATH (Debian: apt-get install chromium); other tests check the page's data",
)

HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">&amp;\u202e"


def _opened(group: ScriptedGroup, folder: Path, fragment: str = "", group_id: str = "billing") -> str:
    file = folder / "page.html"
    file.write_text(html_page(group, group_id))
    return dom_of(file, folder / "profile", fragment)


def _data(dom: str, name: str) -> int:
    found = re.search(rf'<html[^>]* data-{name}="(\d+)"', dom)
    assert found is not None, f"the page has not set {name}"
    return int(found[1])


def test_the_page_draws_every_member_and_the_details_of_the_rebalance_in_its_address(tmp_path: Path) -> None:
    dom = _opened(incident(), tmp_path, "#rebalance=21")
    assert _data(dom, "ready") >= 0
    assert (_data(dom, "rows"), _data(dom, "drawn")) == (8, 8)
    assert _data(dom, "bars") >= 8
    assert dom.count('<li data-number="') == 26
    (detail,) = re.findall(r'<div class="detail">.*?</div>', dom, re.DOTALL)
    assert "consumer poll timeout has expired" in detail
    assert "billing-4 at /10.0.3.8" in detail
    assert "returns 1 \u2192 none" in detail


def test_what_clients_choose_is_shown_as_text_and_never_runs(tmp_path: Path) -> None:
    group = ScriptedGroup(HOSTILE, ((HOSTILE, 2),))
    group.start(HOSTILE, f"{HOSTILE}-2", reason=HOSTILE)
    group.leave(next(iter(group.members)), f"left: {HOSTILE}")
    dom = _opened(group, tmp_path, "#rebalance=1", HOSTILE)
    assert _data(dom, "rows") == 2
    assert "<title>taken" not in dom
    assert len(re.findall(r"<script\b", dom)) == 2
    assert "<img" not in dom
    (heading,) = re.findall(r'<h1 id="group">(.*?)</h1>', dom, re.DOTALL)
    assert heading.startswith("&lt;/script&gt;")
    assert "\u202e" not in dom


def test_a_page_of_200_members_and_500_rebalances_opens(tmp_path: Path) -> None:
    dom = _opened(large(), tmp_path, group_id="large")
    assert _data(dom, "rows") == 200
    assert dom.count('<li data-number="') == 499
