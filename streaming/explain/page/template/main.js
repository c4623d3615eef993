// Connects the page with its reader: mouse, keys, search, and the part of the address behind #.

const search = document.getElementById("find");
const tip = document.getElementById("tip");
const fit = document.getElementById("fit");
const help = document.getElementById("help");
/** Whether the page has more than the picture: then arrow keys and the wheel are the page's without its focus. */
const isPart = document.getElementById("group") === null;
let isPlanned = false;
let dragged = null;
let addressTimer = 0;

/** Draw at the next opportunity, once for all changes until then. */
function redraw() {
  if (isPlanned) return;
  isPlanned = true;
  requestAnimationFrame(() => {
    isPlanned = false;
    draw();
    writeAddress();
  });
}

function choose() {
  chooseRows();
  writeList(select);
  redraw();
}

/** Select a rebalance, and bring it into view. */
function select(number, zooms = true) {
  view.selected = number;
  const one = rebalances[number];
  if (one && zooms) {
    const width = Math.max((one.end - one.began) * 6, Math.min(view.to - view.from, SPAN / 8));
    if (one.began < view.from || one.end > view.to || xOf(one.end) - xOf(one.began) < 24) {
      show((one.began + one.end - width) / 2, (one.began + one.end + width) / 2);
    }
  }
  markSelected();
  redraw();
}

/** Keep what is shown in the address, so that it can be passed on; not with every step of a movement. */
function writeAddress() {
  clearTimeout(addressTimer);
  addressTimer = setTimeout(() => {
    const parts = [];
    if (view.selected >= 0) parts.push(`rebalance=${view.selected}`);
    if (view.to - view.from < SPAN) parts.push(`from=${Math.floor(view.from)}`, `to=${Math.ceil(view.to)}`);
    history.replaceState(null, "", `#${parts.join("&")}`);
  }, 400);
}

/** Show what the address names: a rebalance, and the part of the time, in ms since the first entry. */
function followAddress() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const number = (name) => (/^\d+$/.test(wanted.get(name) ?? "") ? Number(wanted.get(name)) : -1);
  const [rebalance, from, to] = ["rebalance", "from", "to"].map(number);
  const hasTimes = from >= 0 && to > from;
  if (hasTimes) show(from, to);
  if (rebalances[rebalance]) select(rebalance, !hasTimes);
  draw();
}

function step(by) {
  const shown = rebalances.filter(rebalanceMatches);
  if (!shown.length) return;
  const here = shown.findIndex((one) => one.number === view.selected);
  const next = here < 0 ? (by > 0 ? 0 : shown.length - 1) : Math.min(Math.max(here + by, 0), shown.length - 1);
  select(shown[next].number);
}

function toggleFit() {
  view.isFitted = !view.isFitted;
  fit.setAttribute("aria-pressed", String(view.isFitted));
  redraw();
}

function clear() {
  search.value = view.query = "";
  search.blur();
  view.selected = -1;
  choose();
}

function showTip(event) {
  const box = plot.getBoundingClientRect();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top];
  const lines = linesAt(x, y);
  if (lines.length < 2) {
    tip.hidden = true;
    return;
  }
  tip.replaceChildren(...lines.map((line, place) => element("p", place === 1 ? "strong" : "", line)));
  tip.hidden = false;
  const around = tip.parentElement.getBoundingClientRect();
  const left = Math.min(event.clientX - around.left + 14, around.width - tip.offsetWidth - 6);
  const below = event.clientY - around.top + 16;
  const fitsBelow = below + tip.offsetHeight < around.height;
  tip.style.left = `${Math.max(0, left)}px`;
  tip.style.top = `${fitsBelow ? below : Math.max(0, below - tip.offsetHeight - 28)}px`;
}

function listenToMouse() {
  plot.addEventListener("wheel", (event) => {
    if (isPart && document.activeElement !== plot) return;
    event.preventDefault();
    if (event.shiftKey) scrollTo(view.top + event.deltaY + event.deltaX);
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) moveBy(event.deltaX);
    else zoom(Math.exp(event.deltaY * 0.0016), timeAt(event.clientX - plot.getBoundingClientRect().left));
    redraw();
  }, { passive: false });
  plot.addEventListener("pointerdown", (event) => {
    plot.setPointerCapture(event.pointerId);
    dragged = { x: event.clientX, y: event.clientY, from: view.from, to: view.to, top: view.top, far: false };
  });
  plot.addEventListener("pointermove", (event) => {
    if (!dragged) return showTip(event);
    const [x, y] = [event.clientX - dragged.x, event.clientY - dragged.y];
    dragged.far = dragged.far || Math.abs(x) + Math.abs(y) > 4;
    const time = (x / plotWidth()) * (dragged.to - dragged.from);
    show(dragged.from - time, dragged.to - time);
    scrollTo(dragged.top - y);
    plot.classList.add("moving");
    tip.hidden = true;
    redraw();
  });
  plot.addEventListener("pointerup", (event) => {
    const wasClick = dragged && !dragged.far;
    dragged = null;
    plot.classList.remove("moving");
    const one = wasClick ? rebalanceAt(event.clientX - plot.getBoundingClientRect().left) : null;
    if (one) select(one.number, false);
  });
  plot.addEventListener("pointerleave", () => { tip.hidden = true; });
  plot.addEventListener("dblclick", (event) => {
    zoom(0.4, timeAt(event.clientX - plot.getBoundingClientRect().left));
    redraw();
  });
  const jump = (event) => {
    if (event.buttons !== 1) return;
    const x = event.clientX - overview.getBoundingClientRect().left;
    const time = ((x - labelWidth()) / plotWidth()) * SPAN;
    const half = (view.to - view.from) / 2;
    show(time - half, time + half);
    redraw();
  };
  overview.addEventListener("pointerdown", jump);
  overview.addEventListener("pointermove", jump);
}

function moveBy(pixels) {
  const time = (pixels / plotWidth()) * (view.to - view.from);
  show(view.from + time, view.to + time);
}

const KEYS = {
  ArrowLeft: () => moveBy(-plotWidth() / 6),
  ArrowRight: () => moveBy(plotWidth() / 6),
  ArrowUp: () => scrollTo(view.top - 3 * rowHeight()),
  ArrowDown: () => scrollTo(view.top + 3 * rowHeight()),
  "+": () => zoom(0.6),
  "=": () => zoom(0.6),
  "-": () => zoom(1 / 0.6),
  0: () => show(0, SPAN),
  f: toggleFit,
  n: () => step(1),
  p: () => step(-1),
  "?": () => help.showModal(),
};

function listenToKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    if (event.key === "Escape") return clear();
    const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    if (isTyping) return undefined;
    if (event.key === "/") {
      event.preventDefault();
      return search.focus();
    }
    const act = KEYS[event.key];
    if (!act) return undefined;
    if (isPart && event.key.startsWith("Arrow") && document.activeElement !== plot) return undefined;
    event.preventDefault();
    act();
    return redraw();
  });
}

function listenToControls() {
  search.addEventListener("input", () => {
    view.query = search.value;
    choose();
  });
  document.getElementById("order").addEventListener("change", (event) => {
    view.order = event.target.value;
    choose();
  });
  const buttons = { "zoom-in": "+", "zoom-out": "-", "zoom-all": "0", fit: "f", "help-open": "?" };
  for (const [id, key] of Object.entries(buttons)) {
    document.getElementById(id).addEventListener("click", () => {
      KEYS[key]();
      redraw();
    });
  }
  new ResizeObserver(redraw).observe(plot);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    readColours();
    redraw();
  });
}

/** Leave no empty space below a few members, where more of the page follows. */
function limitHeight() {
  if (!isPart) return;
  const picture = document.getElementById("picture");
  const rows = AXIS + STRIP + (lanes.length + 1) * HIGHEST_ROW;
  picture.style.maxHeight = `${Math.max(400, picture.offsetHeight - plot.offsetHeight + rows)}px`;
}

function begin() {
  readColours();
  writeHeading();
  writeRefusals();
  writeNow();
  writeCategories(choose);
  chooseRows();
  writeList(select);
  writeLag();
  limitHeight();
  listenToMouse();
  listenToKeys();
  listenToControls();
  draw();
  followAddress();
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

begin();
