// Draws the members by time, and the overview above them.

const plot = document.getElementById("plot");
const overview = document.getElementById("overview");
const FONT = getComputedStyle(document.body).fontFamily;
const STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 15000, 30000, 60000, 120000, 300000, 600000, 900000,
  1800000, 3600000, 7200000, 10800000, 21600000, 43200000, 86400000, 172800000, 604800000,
];

let colours = {};
let partitionColours = [];
let bars = 0;

function readColours() {
  const style = getComputedStyle(document.documentElement);
  const names = [
    "paper", "panel", "line", "ink", "dim", "zebra", "presence", "commit", "good", "focus", "bar-ink", "bar-saturation",
    "bar-lightness", ...Object.keys(CATEGORIES),
  ];
  colours = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  // The golden angle keeps neighbours apart.
  partitionColours = page.partitions.map(
    (_, place) => `hsl(${(205 + place * 137.508) % 360} ${colours["bar-saturation"]} ${colours["bar-lightness"]})`,
  );
}

/** A context whose unit is a CSS pixel, for a canvas that is cleared. */
function contextOf(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

/** A text that fits into a width, shortened in its middle. */
function fitted(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let kept = Math.floor((text.length * width) / context.measureText(text).width) - 1;
  while (kept > 1) {
    const head = Math.ceil(kept * 0.6);
    const short = `${text.slice(0, head)}\u2026${text.slice(text.length - (kept - head))}`;
    if (context.measureText(short).width <= width) return short;
    kept -= 1;
  }
  return "";
}

function draw() {
  const { context, width, height } = contextOf(plot);
  view.width = width;
  view.height = height;
  scrollTo(view.top);
  bars = 0;
  context.save();
  context.beginPath();
  context.rect(0, AXIS + STRIP, width, height - AXIS - STRIP);
  context.clip();
  const row = rowHeight();
  const first = Math.max(0, Math.floor(view.top / row));
  const last = Math.min(view.rows.length, Math.ceil((view.top + plotHeight()) / row));
  drawGrid(context, height);
  for (let i = first; i < last; i++) drawRow(context, view.rows[i], i, AXIS + STRIP + i * row - view.top, row);
  drawBands(context, height);
  context.restore();
  drawLabels(context, first, last, row);
  drawAxis(context, width, height);
  drawOverview();
  if (!lagChart.hidden) drawLag();
  plot.setAttribute("aria-label", `${counted(view.rows.length, "member")} from ${clock(view.from)} to ${clock(view.to)}`);
  Object.assign(document.documentElement.dataset, { rows: view.rows.length, drawn: last - first, bars });
}

/** The step of the axis in ms, and its first multiple that is shown. */
function axisSteps() {
  const room = ((view.to - view.from) * 96) / plotWidth();
  const step = STEPS.find((one) => one >= room) || STEPS[STEPS.length - 1];
  const origin = page.first + shiftAt(view.from);
  return { step, beginning: Math.ceil((origin + view.from) / step) * step - origin };
}

function drawGrid(context, height) {
  const { step, beginning } = axisSteps();
  context.fillStyle = colours.line;
  for (let time = beginning; time <= view.to; time += step) context.fillRect(xOf(time), 0, 1, height);
}

function drawRow(context, lane, place, y, row) {
  if (place % 2 === 1) {
    context.fillStyle = colours.zebra;
    context.globalAlpha = 0.6;
    context.fillRect(0, y, view.width, row);
    context.globalAlpha = 1;
  }
  const left = labelWidth();
  context.save();
  context.beginPath();
  context.rect(left, y, plotWidth() + 8, row);
  context.clip();
  const inset = row >= 16 ? 3 : row >= 8 ? 1.5 : 0.4;
  drawStays(context, lane, y, row);
  drawOwned(context, lane, y + inset, row - 2 * inset);
  drawCommits(context, lane, y, row);
  drawRefusals(context, lane.refusals, y, row);
  if (row >= 6) drawEnds(context, lane, y, row);
  context.restore();
}

function drawStays(context, lane, y, row) {
  context.fillStyle = colours.presence;
  const thickness = Math.max(1, Math.min(3, row / 6));
  for (const stay of lane.stays) {
    if (stay.to < view.from || stay.from > view.to) continue;
    const x = Math.max(xOf(stay.from), 0);
    context.fillRect(x, y + (row - thickness) / 2, Math.min(xOf(stay.to), view.width) - x, thickness);
  }
}

function drawOwned(context, lane, y, height) {
  const { times, values, count } = lane.owned;
  let drawnTo = -1;
  for (let i = Math.max(0, lastUntil(times, view.from)); i < count && times[i] <= view.to; i++) {
    const set = values[i];
    const end = i + 1 < count ? times[i + 1] : SPAN;
    const x = Math.max(xOf(times[i]), labelWidth() - 1);
    const right = Math.min(xOf(end), view.width);
    if (page.sets[set].length === 0 || right < drawnTo + 0.7) continue;
    drawBar(context, set, x, y, Math.max(0.7, right - x), height);
    drawnTo = right;
  }
}

function drawBar(context, set, x, y, width, height) {
  bars += 1;
  const partitions = partitionsOf(set);
  const stripes = Math.min(partitions.length, Math.max(1, Math.floor(height / 2.5)));
  const gap = width > 3 ? 0.5 : 0;
  for (let i = 0; i < stripes; i++) {
    const partition = partitions[Math.floor((i * partitions.length) / stripes)];
    context.fillStyle = partitionColours[partition];
    if (view.partition >= 0 && partition !== view.partition) context.globalAlpha = 0.15;
    context.fillRect(x + gap, y + (i * height) / stripes, width - gap, height / stripes + 0.2);
    context.globalAlpha = 1;
  }
  if (view.partition >= 0 && partitions.includes(view.partition)) {
    context.fillStyle = partitionColours[view.partition];
    context.fillRect(x + gap, y, width - gap, height);
  }
  if (width > 46 && height >= 10) {
    context.font = `${Math.min(11.5, height - 1)}px ${FONT}`;
    context.textBaseline = "middle";
    context.fillStyle = colours["bar-ink"];
    const from = Math.max(x, labelWidth());
    context.fillText(fitted(context, setName(set), x + width - from - 14), from + 9, y + height / 2 + 0.5);
  }
}

function drawCommits(context, lane, y, row) {
  const { times, count } = lane.commits;
  context.fillStyle = colours.commit;
  context.globalAlpha = row >= 16 ? 0.55 : 0.3;
  const height = Math.max(1, Math.min(3, row / 6));
  let drawnTo = -1;
  for (let i = Math.max(0, lastUntil(times, view.from)); i < count && times[i] <= view.to; i++) {
    const x = xOf(times[i]);
    if (x < drawnTo + 2.5) continue;
    context.fillRect(x, y + row - height, 1.3, height);
    drawnTo = x;
  }
  context.globalAlpha = 1;
}

/** Triangles at the foot of a place: the first of requests that were refused, and a line until the last one. */
function drawRefusals(context, shown, y, row) {
  const size = Math.max(2, Math.min(5, row / 3));
  context.fillStyle = colours.expire;
  for (const one of shown) {
    const [begin, end] = [xOf(one.first), xOf(one.last)];
    if (end < labelWidth() - 10 || begin > view.width) continue;
    context.beginPath();
    context.moveTo(begin - size, y + row);
    context.lineTo(begin, y + row - size * 1.6);
    context.lineTo(begin + size, y + row);
    context.fill();
    if (end > begin) context.fillRect(begin, y + row - 1.5, end - begin, 1.5);
  }
}

/** Where members came, left and were expelled. */
function drawEnds(context, lane, y, row) {
  const size = Math.min(5, row / 3);
  const middle = y + row / 2;
  for (const stay of lane.stays) {
    const [begin, end] = [xOf(stay.from), xOf(stay.to)];
    if (end < labelWidth() - 10 || begin > view.width) continue;
    if (!stay.before) {
      context.fillStyle = colours.good;
      context.beginPath();
      context.moveTo(begin, middle - size);
      context.lineTo(begin + size * 1.2, middle);
      context.lineTo(begin, middle + size);
      context.fill();
    }
    if (!stay.hasEnded) continue;
    context.strokeStyle = stay.expelled ? colours.expire : colours.dim;
    context.lineWidth = stay.expelled ? 2 : 1.5;
    context.beginPath();
    if (stay.expelled) {
      context.moveTo(end - size, middle - size);
      context.lineTo(end + size, middle + size);
      context.moveTo(end - size, middle + size);
      context.lineTo(end + size, middle - size);
    } else {
      context.moveTo(end, middle - size);
      context.lineTo(end, middle + size);
    }
    context.stroke();
  }
}

function drawBands(context, height) {
  const visible = rebalances.filter((one) => isShown(one) && one.end >= view.from && one.began <= view.to);
  // Many bands side by side would hide what is behind them.
  const strength = Math.min(1, plotWidth() / 16 / Math.max(1, visible.length));
  for (const one of visible) {
    const x = xOf(one.began);
    const width = Math.max(1.2, xOf(one.end) - x);
    if (x + width < labelWidth()) continue;
    const isSelected = one.number === view.selected;
    const from = Math.max(x, labelWidth());
    context.fillStyle = colours[one.category];
    context.globalAlpha = isSelected ? 0.34 : 0.17 * strength;
    context.fillRect(from, AXIS + STRIP, x + width - from, height);
    context.globalAlpha = isSelected ? 1 : 0.5 * strength;
    if (x >= labelWidth()) context.fillRect(x, AXIS + STRIP, isSelected ? 1.5 : 0.6, height);
    context.globalAlpha = 1;
  }
}

function drawLabels(context, first, last, row) {
  const size = Math.min(12, Math.max(8, row - 2));
  const every = Math.max(1, Math.ceil((size + 1) / row));
  context.save();
  context.beginPath();
  context.rect(0, AXIS + STRIP, labelWidth(), plotHeight());
  context.clip();
  context.fillStyle = colours.paper;
  context.font = `${size}px ${FONT}`;
  context.textBaseline = "middle";
  for (let i = first; i < last; i++) {
    if (i % every !== 0) continue;
    context.fillStyle = colours.ink;
    const y = AXIS + STRIP + i * row - view.top + (row * every) / 2;
    const { label, short } = view.rows[i];
    const width = labelWidth() - 24;
    context.fillText(context.measureText(label).width <= width ? label : fitted(context, short, width), 18, y);
  }
  context.restore();
  if (view.rows.length === 0) {
    context.fillStyle = colours.dim;
    context.font = `13px ${FONT}`;
    context.fillText(lanes.length ? "No member matches the search." : "No member joined in this time.", 18, AXIS + STRIP + 24);
  }
}

function drawAxis(context, width, height) {
  context.fillStyle = colours.paper;
  context.fillRect(0, 0, width, AXIS + STRIP);
  context.fillStyle = colours.panel;
  context.fillRect(labelWidth(), AXIS, width - labelWidth(), STRIP);
  const { step, beginning } = axisSteps();
  const precision = step >= 60000 ? -1 : step >= 1000 ? 0 : 3;
  context.font = `11px ${FONT}`;
  context.textBaseline = "middle";
  for (let time = beginning; time <= view.to; time += step) {
    const x = xOf(time);
    const isMidnight = (page.first + time + shiftAt(time)) % 86400000 === 0;
    context.fillStyle = colours.line;
    context.fillRect(x, 0, 1, AXIS);
    context.fillStyle = colours.dim;
    const text = isMidnight || step >= 86400000 ? day(time).slice(5) : clock(time, precision);
    if (x + 4 + context.measureText(text).width <= width) context.fillText(text, x + 4, AXIS / 2);
  }
  context.fillText(`${day(view.from)}, ${ZONE}`, 18, AXIS / 2);
  context.fillText("rebalances", 18, AXIS + STRIP / 2);
  for (const one of rebalances) {
    if (!isShown(one) || one.end < view.from || one.began > view.to) continue;
    const from = Math.max(xOf(one.began), labelWidth());
    context.fillStyle = colours[one.category];
    context.fillRect(from, AXIS + 2, Math.max(2, xOf(one.end) - from), STRIP - 4);
  }
  context.save();
  context.beginPath();
  context.rect(labelWidth(), AXIS, width - labelWidth(), STRIP);
  context.clip();
  drawRefusals(context, refusals.filter((one) => one.lane < 0), AXIS, STRIP);
  context.restore();
  context.fillStyle = colours.line;
  context.fillRect(0, AXIS + STRIP - 1, width, 1);
  context.fillRect(labelWidth() - 1, 0, 1, height);
}

/** The whole time, with the part that is shown. */
function drawOverview() {
  const { context, width, height } = contextOf(overview);
  const left = labelWidth();
  const scale = (time) => left + (time / SPAN) * plotWidth();
  context.font = `11px ${FONT}`;
  context.textBaseline = "middle";
  context.fillStyle = colours.dim;
  context.fillText("whole time", 18, height / 2);
  for (const one of rebalances) {
    if (!isShown(one)) continue;
    context.fillStyle = colours[one.category];
    context.globalAlpha = one.number === view.selected ? 1 : 0.65;
    context.fillRect(scale(one.began), 8, Math.max(1, scale(one.end) - scale(one.began)), height - 16);
  }
  context.globalAlpha = 1;
  const [from, to] = [scale(view.from), scale(view.to)];
  context.fillStyle = colours.ink;
  context.globalAlpha = 0.08;
  context.fillRect(from, 3, to - from, height - 6);
  context.globalAlpha = 0.6;
  context.strokeStyle = colours.ink;
  context.lineWidth = 1;
  context.strokeRect(from + 0.5, 3.5, Math.max(3, to - from - 1), height - 7);
  context.globalAlpha = 1;
}
