// The text beside the picture: figures, the list of rebalances with the details of the selected one, the tip.

/** An element with a class and a text; text never becomes markup. */
function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function percent(share) {
  const shown = share * 100;
  return `${shown > 0 && shown < 10 ? shown.toFixed(1) : Math.round(shown)}%`;
}

/** A time of the page, to the second; exact, in UTC, for the pointer. */
function timeElement(time, className) {
  const shown = IS_LOCAL ? readable(page.first + time) : `${day(time)} ${clock(time, 0)}`;
  const made = element("time", className, shown);
  made.dateTime = made.title = new Date(page.first + time).toISOString();
  return made;
}

const EXACT_TIME = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)/;

/** A line in which exact times are for the pointer, too. */
function lineWithTimes(text) {
  const line = element("p");
  const parts = text.split(EXACT_TIME);
  line.append(...parts.map((part, place) => (place % 2 ? timeElement(Date.parse(part) - page.first, "") : part)));
  return line;
}

/** The heading of a page that has none of its own. */
function writeHeading() {
  const { summary } = page;
  const heading = document.getElementById("group");
  if (!heading) return;
  heading.textContent = page.group;
  const part = page.isComplete ? "" : "; the journal does not reach back to the members at the beginning";
  const span = document.getElementById("span");
  span.title = `${new Date(page.first).toISOString()} to ${new Date(page.first + SPAN).toISOString()}`;
  span.textContent =
    `${page.groupType === "Unknown" ? "Group" : `${page.groupType} group`}, ${duration(SPAN)} from ${day(0)} ${clock(0, 0)} to ${day(SPAN)} ${clock(SPAN, 0)} ${ZONE}${part}`;
  const figures = [
    ["Rebalances", summary.rebalances],
    ["an hour", summary.rebalancesAnHour.toFixed(1)],
    ["not Stable", percent(summary.notStableShare)],
    ["flapping", percent(summary.flapping)],
    ["members", lanes.length],
  ];
  if (page.refused && page.refused.requests) figures.push(["refused", page.refused.requests]);
  if (summary.busiest) figures.push(["most caused by", `${summary.busiest} (${summary.busiestCount})`]);
  for (const [name, value] of figures) {
    const pair = element("div");
    pair.append(element("dt", "", name), element("dd", String(value).length > 12 ? "long" : "", value));
    if (String(value).length > 12) pair.title = value;
    document.getElementById("figures").append(pair);
  }
}

function writeNow() {
  document.getElementById("now").append(...page.now.map(lineWithTimes));
}

/** The list of refused requests, and what it lacks. */
function writeRefusals() {
  const section = document.getElementById("refused");
  section.hidden = !page.refused || !(refusals.length || page.refused.notes.length);
  if (section.hidden) return;
  const { requests, commits, busiest, busiestCount, notes } = page.refused;
  const most = busiest ? `, most from ${busiest} (${busiestCount})` : "";
  if (requests) section.append(element("p", "", `${counted(requests, "request")}, among them ${counted(commits, "commit")}${most}`));
  for (const one of refusals.slice(0, MOST_LISTED)) {
    const item = element("div", "detail");
    const heading = element("p");
    heading.append(element("span", "dot expire"), one.lines[0], " ", timeElement(one.first, "key"));
    item.append(heading);
    for (const line of one.lines.slice(1)) item.append(element("p", "", line));
    section.append(item);
  }
  if (refusals.length > MOST_LISTED) section.append(element("p", "key", `and ${refusals.length - MOST_LISTED} more`));
  for (const note of notes) section.append(element("p", "", note));
}

function writeCategories(changed) {
  const counts = {};
  for (const one of rebalances) counts[one.category] = (counts[one.category] || 0) + 1;
  for (const [category, name] of Object.entries(CATEGORIES)) {
    if (!counts[category]) continue;
    const button = element("button");
    button.append(element("span", `dot ${category}`), `${name} ${counts[category]}`);
    button.setAttribute("aria-pressed", "true");
    button.addEventListener("click", () => {
      const isHidden = !view.hidden.delete(category);
      if (isHidden) view.hidden.add(category);
      button.setAttribute("aria-pressed", String(!isHidden));
      changed();
    });
    document.getElementById("categories").append(button);
  }
}

function lengthOf(one) {
  return one.ended === undefined ? "goes on" : duration(one.end - one.began);
}

function numberOf(one) {
  if (one.generation === undefined) return "";
  return ` \u2192 ${one.groupType === "consumer" ? "epoch" : "generation"} ${one.generation}`;
}

function writeList(select) {
  const list = document.getElementById("rebalances");
  const shown = rebalances.filter(rebalanceMatches);
  document.getElementById("count").textContent =
    (shown.length === rebalances.length ? "" : `${shown.length} of `) + counted(rebalances.length, "rebalance");
  list.replaceChildren(
    ...shown.map((one) => {
      const item = element("li");
      const button = element("button");
      button.append(
        element("span", `dot ${one.category}`),
        element("span", "", one.cause.trigger + numberOf(one)),
        element("span", "long", lengthOf(one)),
        timeElement(one.began, "when"),
      );
      button.addEventListener("click", () => select(one.number));
      item.append(button);
      item.dataset.number = one.number;
      return item;
    }),
  );
  markSelected(false);
}

/** Show the details of the selected rebalance in the list. */
function markSelected(scrolls = true) {
  for (const old of document.querySelectorAll("#rebalances [aria-current]")) {
    old.removeAttribute("aria-current");
    old.querySelector(".detail").remove();
  }
  const item = document.querySelector(`#rebalances > li[data-number="${Number(view.selected)}"]`);
  if (!item) return;
  item.setAttribute("aria-current", "true");
  item.append(detailsOf(rebalances[view.selected]));
  if (scrolls) item.scrollIntoView({ block: "nearest" });
}

function detailsOf(one) {
  const detail = element("div", "detail");
  one.causes.forEach((cause, place) => {
    const line = element("p");
    const sure = cause.isCertain ? "certain" : "possible";
    const [first, last] = cause.entries;
    const entries = first === last ? `entry ${first}` : `entries ${first} to ${last}`;
    line.append(element("span", "key", place ? "or perhaps " : "because "));
    if (place) line.append(`${cause.trigger}: `);
    line.append(`${cause.member ? `${cause.member}: ` : ""}${cause.text} `);
    line.append(element("span", "key", `[${sure}; ${entries} of the journal]`));
    detail.append(line);
  });
  detail.append(phasesOf(one));
  addList(detail, "waited for", one.waits.map(([lane, what, from, to]) => `${laneName(lane)} ${what}${waited(from, to)}`));
  addList(detail, "came", one.came.map(laneName));
  addList(detail, "went", one.went.map(([lane, reason]) => `${laneName(lane)} (${reason})`));
  if (one.moves) detail.append(element("p", "", one.moves));
  addList(detail, "partitions", changesOf(one));
  return detail;
}

function waited(from, to) {
  return to === null ? ", still" : `, ${duration(to - from)}`;
}

function phasesOf(one) {
  const line = element("p");
  const isConsumer = one.groupType === "consumer";
  const [first, second] = isConsumer ? ["target", "members"] : ["joining", "assignment"];
  const parts = [];
  if (one.joined !== undefined) {
    parts.push(`${first} ${duration(one.joined - one.began)}${one.wasEmpty ? " with the initial delay" : ""}`);
    if (one.ended !== undefined) parts.push(`${second} ${duration(one.ended - one.joined)}`);
  }
  if (one.isInterrupted) parts.push("interrupted by the next rebalance");
  if (one.ended === undefined) parts.push("not complete");
  line.append(element("span", "key", "phases "), parts.join(", "));
  return line;
}

/** The members whose partitions differ after a rebalance. */
function changesOf(one) {
  if (one.ended === undefined) return [];
  const changes = [];
  for (const lane of lanes) {
    const before = setAt(lane, one.began - 1);
    const after = setAt(lane, one.ended);
    if (before !== after) changes.push(`${lane.label}: ${setName(before)} \u2192 ${setName(after)}`);
  }
  return changes;
}

const LISTED = 30;
const MOST_LISTED = 200;

function addList(parent, title, lines) {
  if (!lines.length) return;
  parent.append(element("span", "key", title));
  const list = element("ul");
  for (const line of lines.slice(0, LISTED)) list.append(element("li", "", line));
  if (lines.length > LISTED) list.append(element("li", "key", `and ${lines.length - LISTED} more`));
  parent.append(list);
}

function laneName(lane) {
  return lane < 0 ? "a member that the journal does not name" : lanes[lane].label;
}

/** What is at a place of the picture, as lines; the second one is emphasised. */
function linesAt(x, y) {
  const time = timeAt(x);
  const lines = [`${day(time)} ${clock(time)}`];
  const lane = y > AXIS + STRIP ? view.rows[rowAt(y)] : undefined;
  if (lane) {
    lines.push(lane.label);
    const stay = stayAt(lane, time) || lane.stays.find((one) => one.hasEnded && Math.abs(xOf(one.to) - x) < 6);
    if (stay) {
      if (x >= labelWidth()) lines.push(`owns ${setName(setAt(lane, time))}`);
      lines.push(stay.id);
      if (stay.hasEnded && Math.abs(xOf(stay.to) - x) < 6) lines.push(`${stay.expelled ? "expelled" : "went"}: ${stay.reason}`);
    }
  }
  if (x >= labelWidth()) {
    const near = (lane ? lane.refusals : y > AXIS ? refusals.filter((each) => each.lane < 0) : []).filter(
      (each) => x >= xOf(each.first) - 5 && x <= xOf(each.last) + 5,
    );
    for (const each of near.slice(0, 3)) lines.push(...each.lines);
    if (near.length > 3) lines.push(`and ${near.length - 3} more refusals`);
  }
  const one = x >= labelWidth() ? rebalanceAt(x) : null;
  if (one) lines.push(`${one.cause.trigger}${numberOf(one)}, ${lengthOf(one)}`, one.cause.text);
  return lines;
}
