// What is shown: the part of the time, the members, and what is selected.

const LABELS = 230;
const NARROW_LABELS = 110;
const AXIS = 24;
const STRIP = 16;
const SHORTEST = 20;
const LOWEST_ROW = 12;
const HIGHEST_ROW = 34;

const view = {
  from: 0,
  to: SPAN,
  top: 0,
  isFitted: false,
  order: "arrival",
  query: "",
  partition: -1,
  hidden: new Set(),
  selected: -1,
  rows: [],
  width: 0,
  height: 0,
};

function labelWidth() {
  return view.width < 700 ? NARROW_LABELS : LABELS;
}

function plotWidth() {
  return Math.max(1, view.width - labelWidth() - 8);
}

function plotHeight() {
  return Math.max(1, view.height - AXIS - STRIP);
}

function xOf(time) {
  return labelWidth() + ((time - view.from) / (view.to - view.from)) * plotWidth();
}

function timeAt(x) {
  return view.from + ((x - labelWidth()) / plotWidth()) * (view.to - view.from);
}

function rowHeight() {
  const fitting = plotHeight() / Math.max(1, view.rows.length);
  return view.isFitted ? Math.min(HIGHEST_ROW, fitting) : Math.min(HIGHEST_ROW, Math.max(LOWEST_ROW, fitting));
}

function rowAt(y) {
  return Math.floor((y - AXIS - STRIP + view.top) / rowHeight());
}

function isShown(rebalance) {
  return !view.hidden.has(rebalance.category);
}

/** Show a part of the time, moved into the time that there is. */
function show(from, to) {
  const width = Math.min(SPAN, Math.max(SHORTEST, to - from));
  const middle = (from + to) / 2;
  view.from = Math.min(Math.max(0, middle - width / 2), SPAN - width);
  view.to = view.from + width;
}

function zoom(factor, time = (view.from + view.to) / 2) {
  show(time - (time - view.from) * factor, time + (view.to - time) * factor);
}

function scrollTo(top) {
  const height = rowHeight() * view.rows.length;
  view.top = Math.max(0, Math.min(top, height - plotHeight()));
}

/** Choose the members that the search finds, in the chosen order. A partition finds those that owned it. */
function chooseRows() {
  const query = view.query.trim().toLowerCase();
  view.partition = query === "" ? -1 : page.partitions.findIndex(
    ([topic, number]) => `${topic}-${number}`.toLowerCase() === query || `${topic} ${number}`.toLowerCase() === query,
  );
  let found = lanes;
  if (view.partition >= 0) {
    found = lanes.filter((lane) => lane.owned.values.some((set) => partitionsOf(set).includes(view.partition)));
  } else if (query !== "") {
    const concerned = new Set(rebalances.filter((one) => one.text.includes(query)).map((one) => one.cause.lane));
    found = lanes.filter((lane) => lane.text.includes(query) || concerned.has(lane.number));
  }
  view.rows = [...found];
  if (view.order === "name") view.rows.sort((a, b) => (a.label < b.label ? -1 : a.label > b.label ? 1 : 0));
  if (view.order === "caused") view.rows.sort((a, b) => b.caused - a.caused);
  scrollTo(view.top);
}

function rebalanceMatches(one) {
  const query = view.query.trim().toLowerCase();
  return isShown(one) && (query === "" || view.partition >= 0 || one.text.includes(query));
}

/** The rebalance nearest to a place, at most some pixels away. */
function rebalanceAt(x) {
  let nearest = null;
  let distance = 4;
  for (const one of rebalances) {
    if (!isShown(one)) continue;
    const away = Math.max(xOf(one.began) - x, x - xOf(one.end), 0);
    if (away < distance || (away === 0 && distance === 0)) {
      nearest = one;
      distance = away;
    }
  }
  return nearest;
}
