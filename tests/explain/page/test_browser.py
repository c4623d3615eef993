"""The page in a real browser: it draws, and shows what clients choose as text."""

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest

from streaming.explain.lag import Lag, LagSample, PartitionLag
from tests.explain.page.chromium import chromium, dom_of
from tests.explain.page.pages import html_page
from tests.explain.page.scripted import BEGIN, ScriptedGroup, incident, large

pytestmark = pytest.mark.skipif(
    chromium() is None,
    reason="there is no chromium on the PATH (Debian: apt-get install chromium); other tests check the page's data",
)

HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">&amp;\u202e"


def _opened(
    group: ScriptedGroup, folder: Path, fragment: str = "", group_id: str = "billing", lag: Lag | None = None
) -> str:
    file = folder / "page.html"
    file.write_text(html_page(group, group_id, lag))
    return dom_of(file, folder / "profile", fragment)


def _data(dom: str, name: str) -> int:
    found = re.search(rf'<html[^>]* data-{name}="(\d+)"', dom)
    assert found is not None, f"the page has not set {name}"
    return int(found[1])


PRESS = """
const press = (key) => document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const type = (text) => {
  search.value = text;
  search.dispatchEvent(new Event("input"));
  draw();
  return view.rows.map((lane) => lane.label);
};
const at = (lane, time) => {
  const box = plot.getBoundingClientRect();
  const y = AXIS + STRIP + (view.rows.findIndex((one) => one.label === lane) + 0.5) * rowHeight();
  return { clientX: box.left + xOf(time), clientY: box.top + y, bubbles: true };
};
"""


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


def test_the_lag_is_drawn_and_told(tmp_path: Path) -> None:
    group = incident()
    samples = [
        LagSample(BEGIN + minutes * 60_000, records) for minutes, records in ((1, 20), (30, None), (60, 1_500), (90, 7))
    ]
    now = [PartitionLag("orders", 0, 93, 100), PartitionLag(HOSTILE, 1, 5, None)]
    dom = _opened(group, tmp_path, lag=Lag(samples=samples, now=now))
    assert _data(dom, "lag") == 3
    (told,) = re.findall(r'<canvas id="lag"[^>]*aria-label="([^"]*)"', dom)
    for part in ("7 records now in 2 partitions", "without 1 whose end", "The most of 4 samples: 1,500", "at 17:00:00"):
        assert part in told
        assert part in re.sub(r"<canvas[^>]*>", "", dom)
    assert "<td" in dom
    assert "not known" in dom
    assert "<img" not in dom


def test_lag_that_is_absent_says_why(tmp_path: Path) -> None:
    dom = _opened(incident(), tmp_path, lag=Lag(absent="no broker answers"))
    assert "The lag is not shown: no broker answers." in dom
    assert re.search(r'<canvas id="lag"[^>]* hidden', dom)


ACTIONS = {
    "keys": """
        const shown = () => Math.round(view.to - view.from);
        const whole = shown();
        press("+");
        const zoomed = shown();
        const before = view.from;
        press("ArrowRight");
        const moved = view.from > before && shown() === zoomed;
        press("n");
        press("n");
        const second = view.selected;
        press("p");
        const inView = rebalances[0].began >= view.from && rebalances[0].end <= view.to;
        const first = view.selected;
        press("0");
        press("f");
        return [zoomed < whole, moved, second, first, inView, shown() === whole, view.isFitted];
    """,
    "search": """
        const found = ["billing-2", "poll timeout", "returns-3", "nobody"].map(type);
        press("Escape");
        return [...found, view.rows.length, rebalances.filter(rebalanceMatches).length];
    """,
    "pointer": """
        const lost = rebalances.find((one) => one.cause.trigger === "session expired");
        plot.dispatchEvent(new PointerEvent("pointermove", at("billing-6 at /10.0.3.9", lost.began - 60000)));
        const owned = tip.innerText;
        const centre = (lost.began + lost.end) / 2;
        const place = at("billing-1 at /10.0.3.7", centre);
        plot.dispatchEvent(new PointerEvent("pointermove", place));
        const rebalance = tip.innerText;
        plot.setPointerCapture = () => {};
        for (const kind of ["pointerdown", "pointerup"]) plot.dispatchEvent(new PointerEvent(kind, place));
        plot.dispatchEvent(new WheelEvent("wheel", { ...place, deltaY: -400, cancelable: true }));
        const isZoomed = view.from < centre && centre < view.to && view.to - view.from < SPAN;
        return [owned, rebalance, view.selected === lost.number, isZoomed];
    """,
    "categories": """
        document.querySelectorAll("#categories button")[2].click();
        return [document.querySelectorAll("#rebalances > li").length, document.getElementById("count").textContent];
    """,
}
"""What a reader does, as the page's script can see it; each begins with the whole time and all members."""


@pytest.fixture(scope="module")
def acted(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What each of the actions returns; the page's own policy would not let them run."""
    folder = tmp_path_factory.mktemp("acted")
    file = folder / "page.html"
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", html_page(incident()))
    results = ", ".join(
        f'{name}: (() => {{ press("Escape"); press("0"); draw(); {script} }})()' for name, script in ACTIONS.items()
    )
    acting = f"<script>{{ {PRESS} document.title = JSON.stringify({{ {results} }}); }}</script>"
    file.write_text(text.replace("</body>", f"{acting}</body>"))
    (title,) = re.findall(r"<title>(.*?)</title>", dom_of(file, folder / "profile"), re.DOTALL)
    return json.loads(html.unescape(title))


def test_keys_zoom_move_and_go_from_rebalance_to_rebalance(acted: Any) -> None:
    assert acted["keys"] == [True, True, 1, 0, True, True, True]


def test_the_search_finds_members_reasons_and_the_owners_of_a_partition(acted: Any) -> None:
    by_name, by_reason, by_partition, by_nothing, members, rebalances = acted["search"]
    assert by_name == ["billing-2 at /10.0.3.7"]
    assert by_reason == ["billing-4 at /10.0.3.8"]
    assert "billing-6 at /10.0.3.9" in by_partition
    assert len(by_partition) < 8
    assert (by_nothing, members, rebalances) == ([], 8, 26)


def test_the_pointer_shows_what_is_below_it_and_a_click_selects_the_rebalance(acted: Any) -> None:
    owned, rebalance, is_selected, is_zoomed = acted["pointer"]
    assert "billing-6 at /10.0.3.9" in owned
    assert "owns orders 3,10; returns 3" in owned
    assert "session expired" in rebalance
    assert "no request of it for 45 s" in rebalance
    assert (is_selected, is_zoomed) == (True, True)


def test_a_kind_of_cause_can_be_hidden(acted: Any) -> None:
    assert acted["categories"] == [18, "18 of 26 rebalances"]
