// Keeps the list of groups current, and moves in it with keys. Every page works without it.

const live = document.querySelector("[data-refresh]");
const pause = document.getElementById("pause");
const stale = document.getElementById("stale");
const filter = document.getElementById("filter");
const search = document.getElementById("search");
let isPaused = false;

/** Replace what the list shows; the focus stays at its link. */
function replaceLive(fresh) {
  const focused = live.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  live.replaceChildren(...fresh.childNodes);
  if (focused === null) return;
  const again = [...live.querySelectorAll("a")].find((one) => one.getAttribute("href") === focused);
  if (again) again.focus({ preventScroll: true });
}

async function refresh() {
  let fresh = null;
  try {
    const answer = await fetch(location.href, { cache: "no-store", credentials: "same-origin" });
    if (answer.ok) fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(live.id);
  } catch {
    // The next attempt follows.
  }
  if (fresh && !isPaused) replaceLive(fresh);
  stale.hidden = fresh !== null;
}

async function keepCurrent() {
  if (!isPaused && !document.hidden) await refresh();
  setTimeout(keepCurrent, Number(live.dataset.refresh));
}

function togglePause() {
  isPaused = !isPaused;
  pause.setAttribute("aria-pressed", String(isPaused));
}

function moveBy(links, step) {
  const at = links.indexOf(document.activeElement);
  const next = at < 0 ? (step > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, at + step));
  links[next].focus();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const isTyping = event.target instanceof HTMLInputElement;
  if (isTyping && event.key === "Escape") event.target.blur();
  if (isTyping) return;
  const links = [...document.querySelectorAll("tbody a")];
  const actions = { "/": () => (filter ?? search).focus() };
  if (links.length > 0) {
    actions.ArrowDown = () => moveBy(links, 1);
    actions.ArrowUp = () => moveBy(links, -1);
  }
  if (live) actions.p = togglePause;
  const action = actions[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});

if (live) {
  pause.hidden = false;
  pause.addEventListener("click", togglePause);
  setTimeout(keepCurrent, Number(live.dataset.refresh));
}
