"""The pages in a real browser: Debian's chromium."""

import html
import json
import re
from pathlib import Path

import msgspec
import pytest

from streaming.explain.live.fleet import FleetRow
from streaming.explain.ui.routes import Site
from streaming.explain.ui.server import serving
from tests.explain.live.given import THREE, row
from tests.explain.page.chromium import chromium, dom_at, dom_of
from tests.explain.page.scripted import incident
from tests.explain.ui.given import GivenSource, get

pytestmark = pytest.mark.skipif(
    chromium() is None,
    reason="there is no chromium on the PATH (Debian: apt-get install chromium); other tests check the pages' elements",
)

WAITS_MS = "--virtual-time-budget=12000"
"""Several times the pause between two updates, by the browser's clock, which does not wait for ours."""


class Growing(GivenSource):
    """A group more with each look."""

    def rows(self) -> list[FleetRow]:
        self.given.append(row(f"new-{len(self.given)}"))
        return super().rows()


def test_the_list_updates_itself_under_its_own_policy(tmp_path: Path) -> None:
    source = Growing(*THREE)
    with serving(Site(source), "127.0.0.1", 0) as port:
        dom = dom_at(f"http://127.0.0.1:{port}/?sort=group", tmp_path / "profile", WAITS_MS)
    assert "new-4" in dom
    assert re.search(r'<button[^>]*aria-pressed="false"[^>]*>Pause', dom)
    assert re.search(r'<p id="stale"[^>]* hidden=', dom)


def test_a_timeline_runs_under_the_servers_policy(tmp_path: Path) -> None:
    source = GivenSource()
    source.stories["billing"] = incident()
    with serving(Site(source), "127.0.0.1", 0) as port:
        dom = dom_at(f"http://127.0.0.1:{port}/timeline?id=billing", tmp_path / "profile")
    assert re.search(r'<html[^>]* data-rows="8"', dom)
    assert re.search(
        r'<p id="span" title="2025-11-24T16:00:00.000Z to 2025-11-24T18:05:23.\d{3}Z">[^<]* local time', dom
    )


PRESS = """
const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const where = () => document.activeElement.id || document.activeElement.textContent;
const places = [];
for (const key of ["ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp", "/", "ArrowDown", "Escape", "p"]) {
  press(key);
  places.push(where());
}
const fresh = new DOMParser().parseFromString(document.documentElement.outerHTML, "text/html");
const rowOf = (text) => [...document.querySelectorAll("tbody a")].find((one) => one.textContent === text);
rowOf("orders").focus();
replaceLive(fresh.getElementById("live"));
places.push(where());
document.title = JSON.stringify([places, isPaused]);
"""


def test_keys_move_in_the_list_and_an_update_leaves_the_focus_at_its_group(tmp_path: Path) -> None:
    file = tmp_path / "list.html"
    page = get(GivenSource(*THREE), "/").page
    file.write_text(page.replace("</body>", f"<script>{PRESS}</script></body>"))
    (title,) = re.findall(r"<title>(.*?)</title>", dom_of(file, tmp_path / "profile"), re.DOTALL)
    places, is_paused = json.loads(html.unescape(title))
    assert places[:6] == ["audit", "orders", "billing", "orders", "filter", "filter"]
    assert places[-1] == "orders"
    assert is_paused


CELLS = """
const range = document.createRange();
const linesOf = (node, from, to) => {
  range.setStart(node, from);
  range.setEnd(node, to);
  return new Set([...range.getClientRects()].map((one) => Math.round(one.top))).size;
};
const broken = [];
for (const cell of document.querySelectorAll("th, td")) {
  const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    for (const word of texts.currentNode.data.matchAll(/[^\\s-]+/g)) {
      if (linesOf(texts.currentNode, word.index, word.index + word[0].length) > 1) broken.push(word[0]);
    }
  }
}
const isWider = document.querySelector(".scrolling").scrollWidth > document.querySelector(".scrolling").clientWidth;
document.title = JSON.stringify([document.querySelectorAll("td").length, broken, isWider]);
"""


@pytest.mark.parametrize("width", [1300, 1600])
def test_no_cell_of_the_list_is_broken_within_a_word(tmp_path: Path, width: int) -> None:
    states = ("Stable", "Empty", "PreparingRebalance", "CompletingRebalance", "Reconciling")
    reason = "billing-3-6c8b8f1e-1f2e-5f2a-8a51-0c9bd0f0e4a1: its session timed out: no request of it for 45 s"
    rows = [
        msgspec.structs.replace(
            row(f"payments-eu-west-1-production-{place}", rebalances=3, lag=1_234_567, state=state),
            group_type="consumer",
            reason=reason,
            since=1,
        )
        for place, state in enumerate(states)
    ]
    file = tmp_path / "list.html"
    file.write_text(get(GivenSource(*rows), "/").page.replace("</body>", f"<script>{{ {CELLS} }}</script></body>"))
    dom = dom_at(file.as_uri(), tmp_path / "profile", f"--window-size={width},900")
    (title,) = re.findall(r"<title>(.*?)</title>", dom, re.DOTALL)
    assert json.loads(html.unescape(title)) == [10 * len(states), [], False]


def test_the_groups_page_draws_the_picture_under_the_servers_policy(tmp_path: Path) -> None:
    source = GivenSource(row("billing"))
    source.stories["billing"] = incident()
    with serving(Site(source), "127.0.0.1", 0) as port:
        dom = dom_at(f"http://127.0.0.1:{port}/group?id=billing#rebalance=23", tmp_path / "profile")
    assert re.search(r'<html[^>]* data-rows="8"', dom)
    assert re.search(r'<html[^>]* data-ready="', dom)
    # Eight members leave no space below them, where more of the page follows.
    assert re.search(r'<div id="picture"[^>]*style="max-height: 4\d\dpx;', dom)
    assert dom.count('<li data-number="') == 26
    assert "phases" in dom
    (shown,) = re.findall(r'<span class="when"><time datetime="2025-11-24T17:32:08.090Z" title="([^"]*)">([^<]*)<', dom)
    assert shown[0] == "2025-11-24T17:32:08.090Z"
    assert re.fullmatch(r"2\d Nov 2025, \d\d:\d\d:08", shown[1])
